package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Environment variables with the addresses of the servers, as spillway itself knows them.
const (
	variableURI        = "SPILLWAY_URI"
	variableManagement = "SPILLWAY_MANAGEMENT"
	variablePostgres   = "SPILLWAY_POSTGRES"
)

// task is what a child of this program does, so that each run is a process of its own. Fields that a kind does not know
// are left zero.
type task struct {
	Duration time.Duration
	Warmup   time.Duration
	Window   int
	Prefetch int
	Size     int // body bytes
	Strategy string
	// Retention is the policy of an inbox that forgets.
	Retention string
	SKUs      int
	Callers   int // at once, in the inbox feed
	Conns     int // to the database
	Lanes     int
	Rows      int // at most
}

// kinds are the tasks that there are.
func kinds() map[string]func(context.Context, servers, task) (measurement, error) {
	return map[string]func(context.Context, servers, task) (measurement, error){
		"plain": runPlain, "feed": runFeed, "bare": runBare, "direct": runDirect, "relay": runRelay, "retain": runRetain,
	}
}

// beChild reads a task, carries it out, and writes what it came to.
func beChild(ctx context.Context, o options) error {
	do, known := kinds()[o.child]
	if !known {
		return fmt.Errorf("-child %q: no such task", o.child)
	}
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		return fmt.Errorf("-child %s: %w", o.child, err)
	}
	m, err := do(ctx, o.servers, t)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// child has a child of this program carry out a task. CPU seconds are those of the whole process.
func (e *env) child(ctx context.Context, kind string, t task) (m measurement, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	input, err := json.Marshal(t)
	if err != nil {
		return m, err
	}
	cmd := e.command(ctx, self, "-child", kind)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("what the child said: %w", err)
	}
	m.CPUSeconds = cpuOf(cmd)
	return m, nil
}

// stopGrace is how long a process may take to tidy up after it was told to stop.
const stopGrace = 30 * time.Second

// command makes a command that knows the servers, and is told to stop when ctx ends before it is killed.
func (e *env) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	s := &e.o.servers
	cmd.Env = append(os.Environ(), variableURI+"="+s.uri, variableManagement+"="+s.management, variablePostgres+"="+s.postgres)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// cpuOf returns the CPU time, user and system, that a process took from its start to its end.
func cpuOf(cmd *exec.Cmd) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}
