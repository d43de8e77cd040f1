package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"spillway/internal/broker/rabbit"
	"spillway/internal/postgres"
)

// machine describes this one, without its name.
func machine() string {
	model := field("/proc/cpuinfo", "model name")
	if model == "" {
		model = "processor of unknown model"
	}
	text := fmt.Sprintf("%d x %s, %s/%s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH)
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		text += ", memory " + memory
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		text += ", kernel " + strings.TrimSpace(string(kernel))
	}
	return text
}

// revision returns the commit that this program was built from, "" when the build did not say.
func revision() (commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	const short = 12
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(short, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += "+dirty"
		}
	}
	return commit
}

// versions asks the servers what they are.
func (s servers) versions(ctx context.Context) (string, error) {
	m, err := rabbit.NewManagement(rabbit.ManagementConfig{URL: s.management})
	if err != nil {
		return "", err
	}
	defer m.Close()
	overview, err := m.Overview(ctx)
	if err != nil {
		return "", err
	}
	words := "RabbitMQ " + overview.Version
	if s.postgres == "" {
		return words, nil
	}
	db, err := postgres.Open(ctx, postgres.Config{URI: s.postgres})
	if err != nil {
		return "", err
	}
	defer db.Close()
	version, err := db.Version(ctx)
	return words + ", PostgreSQL " + version, err
}

// field returns the value of the first line "name: value" of a file, "" without one.
func field(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
