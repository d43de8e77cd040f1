package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// scrapeTimeout bounds the wait for Prometheus to take the last values: its interval is 1 s.
const scrapeTimeout = 5 * time.Second

// announceTarget tells the stack's Prometheus, by file discovery, where this run serves its metrics.
func (r *run) announceTarget() error {
	if r.o.Servers.TargetsDir == "" {
		return nil
	}
	data, err := json.Marshal([]map[string]any{{"targets": []string{r.server.Addr()}}})
	if err != nil {
		return fmt.Errorf("metrics target: %w", err)
	}
	// Written beside and renamed, since Prometheus may read at any moment.
	final := r.targetFile()
	if err := os.WriteFile(final+".new", data, 0o644); err != nil {
		return fmt.Errorf("metrics target: %w", err)
	}
	return os.Rename(final+".new", final)
}

func (r *run) targetFile() string {
	return filepath.Join(r.o.Servers.TargetsDir, "spillway-"+r.o.RunID+".json")
}

// lastScrape lets Prometheus take the final values.
func (r *run) lastScrape() {
	if r.o.Servers.TargetsDir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if err := r.server.WaitScrape(ctx); err != nil {
		r.say("prometheus did not take the last values within %v", scrapeTimeout)
	}
}

// withdrawTarget lets Prometheus forget the run. It is safe at any point of the protocol.
func (r *run) withdrawTarget() {
	if r.o.Servers.TargetsDir != "" {
		_ = os.Remove(r.targetFile()) // gone with the stack otherwise
	}
}
