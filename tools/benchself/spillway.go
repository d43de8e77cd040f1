package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"spillway/internal/broker/rabbit"
	"spillway/internal/postgres"
)

// experiment is one run of the program under test.
type experiment struct {
	profile []byte
	args    []string // flags beyond the usual ones
	forgive []string // codes of findings that belong to such a run and do not spoil it
	// beside, when not nil, is called while the run goes on, with its process and folder; its context ends with the run.
	beside func(ctx context.Context, p *os.Process, dir string)
}

// Codes of findings that do not spoil a run: without a database nothing is audited, without observers nothing is timed.
const (
	codeUnaudited = "account"
	codeUntimed   = "too-few-samples"
)

// spillway carries out an experiment and returns what its result file says. What it left on the servers is removed: a run
// that proves nothing keeps its things for a look.
func (e *env) spillway(ctx context.Context, x experiment) (r outcome, err error) {
	dir, err := os.MkdirTemp("", "spillway-benchself-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	var said bytes.Buffer
	cmd := e.command(ctx, e.o.program, append([]string{"run", "-", "--quiet", "-o", dir}, x.args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(x.profile), &said, &said
	if err := cmd.Start(); err != nil {
		return r, err
	}
	stop := alongside(ctx, x.beside, cmd.Process, dir)
	runErr := cmd.Wait() // the exit code is not 0 where nothing is audited: the file says whether that is all
	stop()
	r, err = readOutcome(filepath.Join(dir, "result.json"), x.forgive)
	err = errors.Join(err, e.tidy(r))
	if err != nil {
		return r, fmt.Errorf("%w: %s", errors.Join(err, runErr), said.Bytes())
	}
	r.cpuSeconds = cpuOf(cmd)
	e.stealMax = max(e.stealMax, r.Environment.Host.Steal)
	return r, nil
}

// alongside runs a function beside a process; the function that it returns ends and awaits it.
func alongside(ctx context.Context, f func(context.Context, *os.Process, string), p *os.Process, dir string) (stop func()) {
	if f == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx, p, dir)
	}()
	return func() {
		cancel()
		<-done
	}
}

// tidyTimeout bounds the removal of what one run left.
const tidyTimeout = time.Minute

// tidy removes what a run that did not pass has left on the servers, where they outlive it.
func (e *env) tidy(r outcome) error {
	if r.Run.ID == "" || r.Verdict == "pass" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidyTimeout)
	defer cancel()
	m, err := rabbit.NewManagement(rabbit.ManagementConfig{URL: e.o.servers.management})
	if err != nil {
		return err
	}
	defer m.Close()
	name := rabbit.VhostPrefix + r.Run.ID
	left, err := m.ListVhosts(ctx, name)
	if err == nil && slices.Contains(left, name) {
		err = m.DeleteVhost(ctx, name)
	}
	if r.Environment.Postgres.Version == "" {
		return err
	}
	return errors.Join(err, dropSchema(ctx, e.o.servers.postgres, "spillway_"+r.Run.ID))
}

func dropSchema(ctx context.Context, uri, schema string) error {
	db, err := postgres.Open(ctx, postgres.Config{URI: uri})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.DropLeftover(ctx, schema)
}

// outcome is what is read of result.json.
type outcome struct {
	Run struct {
		ID string
	} `json:"run"`
	Environment struct {
		Host struct {
			Steal float64 `json:"steal_ratio"`
		} `json:"host"`
		Postgres struct{ Version string } `json:"postgres"`
	} `json:"environment"`
	Phases []struct {
		Name  string
		Start float64 `json:"start_seconds"`
		End   float64 `json:"end_seconds"`
	} `json:"phases"`
	Verdict  string
	Findings []struct{ Severity, Code, Message string } `json:"findings"`
	Messages struct {
		Offered, Confirmed, Applied, Lost, Shed int64
		NotAudited                              int64 `json:"not_audited"`
	} `json:"messages"`
	Rates struct {
		Confirmed float64 `json:"confirmed_per_second"`
	} `json:"rates"`
	Latency struct {
		ScheduleLag *struct{ P99 float64 } `json:"schedule_lag"`
	} `json:"latency_seconds"`
	Publish struct {
		SentEachSecond []int64 `json:"sent_each_second"`
	} `json:"publish"`
	Process struct {
		MaxRSSBytes int64 `json:"max_rss_bytes"`
	} `json:"process"`

	cpuSeconds float64 // of the whole process
}

// errSpoilt is returned for a run whose figures are not what they are taken for.
var errSpoilt = errors.New("the run cannot be used")

func readOutcome(path string, forgive []string) (r outcome, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range r.Findings {
		if f.Severity == "error" && !slices.Contains(forgive, f.Code) {
			return r, fmt.Errorf("%w: %s", errSpoilt, f.Message)
		}
	}
	m := r.Messages
	if m.Confirmed != m.Offered || m.Applied+m.NotAudited != m.Offered || m.Lost != 0 {
		return r, fmt.Errorf("%w: %d confirmed, %d applied and %d without an audit, of %d", errSpoilt, m.Confirmed, m.Applied, m.NotAudited, m.Offered)
	}
	return r, nil
}

// measurement returns the confirmed messages of a run, and its cost.
func (r *outcome) measurement() measurement {
	return measurement{PerSecond: r.Rates.Confirmed, Count: r.Messages.Confirmed, CPUSeconds: r.cpuSeconds}
}
