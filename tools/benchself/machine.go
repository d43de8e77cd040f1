package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
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

// about is the program under test and what it runs on.
type about struct {
	Spillway string `json:"spillway"`
	Revision string `json:"revision"`
	Servers  string `json:"servers"` // with their versions
	Go       string `json:"go"`
}

// aboutOf asks program and servers.
func aboutOf(ctx context.Context, o options) (a about, err error) {
	said, err := exec.CommandContext(ctx, o.program, "version").Output()
	if err != nil {
		return a, fmt.Errorf("%s version: %w", o.program, err)
	}
	if words := strings.Fields(string(said)); len(words) > versionGo {
		a.Spillway, a.Revision, a.Go = words[versionNumber], words[versionRevision], words[versionGo]
	}
	a.Servers, err = o.servers.versions(ctx)
	return a, err
}

// Words of what "spillway version" says.
const (
	versionNumber   = 1
	versionRevision = 2
	versionGo       = 3
)

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
