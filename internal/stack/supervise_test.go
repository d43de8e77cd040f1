//go:build linux

package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is a person at a prompt: the binary with a cache folder of its own and the real root.
type shell struct {
	t     *testing.T
	cache string
	path  string // PATH, where it is another one
}

func newShell(t *testing.T) *shell {
	t.Helper()
	needRoot(t)
	return &shell{t: t, cache: shortTempDir(t)}
}

// shortTempDir is short enough for the path of a socket.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cache") // t.TempDir would hold the test's whole name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *shell) command(args ...string) *exec.Cmd {
	cmd := exec.Command(executable, append([]string{"stack"}, args...)...)
	root, err := FindRoot("")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Env = append(cleanEnvironment(), "XDG_CACHE_HOME="+s.cache, "SPILLWAY_STACK_ROOT="+root.Path)
	if s.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+s.path)
	}
	return cmd
}

// cleanEnvironment is this process's without what spillway would read: every flag is also a variable.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(line string) bool { return strings.HasPrefix(line, "SPILLWAY_") })
}

// run returns standard output and the exit code.
func (s *shell) run(args ...string) (string, int) {
	s.t.Helper()
	cmd := s.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() != 0 {
		s.t.Logf("spillway stack %v: %s", args, stderr.String())
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// hold starts "stack up" in the foreground and returns when it has printed its state.
func (s *shell) hold(stdin io.Reader, args ...string) (*exec.Cmd, State) {
	s.t.Helper()
	cmd := s.command(append([]string{"up", "--json"}, args...)...)
	cmd.Stdin = stdin
	output, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	var state State
	if err := json.NewDecoder(output).Decode(&state); err != nil {
		s.t.Fatal(err)
	}
	return cmd, state
}

func allGone(pids []int) func() bool {
	return func() bool {
		for _, pid := range pids {
			if exists(fmt.Sprintf("/proc/%d", pid)) {
				return false
			}
		}
		return true
	}
}

func TestNothingOutlivesASpillwayThatIsKilled(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	cmd, state := s.hold(nil)
	pids := descendants(cmd.Process.Pid)
	if len(pids) < 8 { // three first processes, three servers, epmd, PostgreSQL's own
		t.Fatalf("the stack has processes %v only", pids)
	}
	data := filepath.Dir(filepath.Dir(state.Addresses.TargetsDir))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, 5*time.Second, allGone(pids))
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), data) {
		t.Errorf("mounts left: %v", err)
	}
	start(t, Options{Services: []string{Prometheus}})
	if exists(data) {
		t.Error("the next start left the dead stack's data")
	}
	if out, code := s.run("status"); code != 6 {
		t.Errorf("status after the kill: exit %d, %q; want 6", code, out)
	}
}

func TestADetachedStackIsFoundUsedAndEnded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out, code := s.run("up", "--detach", "--services", "postgres", "--ttl", "10m"); code != 0 || strings.Contains(out, "PostgreSQL  postgres://spillway:spillway") {
		t.Fatalf("up: exit %d, %q", code, out)
	}
	if out, code := s.run("up", "--detach"); code != 0 {
		t.Errorf("a second up: exit %d, %q; want 0", code, out)
	}
	var state State
	out, _ := s.run("status", "--json", "--show-secrets")
	if err := json.Unmarshal([]byte(out), &state); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if out, _ := s.run("env"); out != "export SPILLWAY_POSTGRES='"+state.Addresses.Postgres+"'\n" {
		t.Errorf("env prints %q", out)
	}
	checkRemote(t, filepath.Join(s.cache, "spillway", "stack.sock"))
	pids := descendants(state.PID)
	if out, code := s.run("down"); code != 0 {
		t.Errorf("down: exit %d, %q", code, out)
	}
	eventually(t, 5*time.Second, allGone(append(pids, state.PID)))
	if out, code := s.run("down"); code != 0 || out != "no stack is up\n" {
		t.Errorf("a second down: exit %d, %q", code, out)
	}
}

// checkRemote drives a stack over its socket.
func checkRemote(t *testing.T, socket string) {
	t.Helper()
	remote, ok, err := attachTo(t.Context(), socket)
	if !ok || err != nil {
		t.Fatalf("attach: %v, %v", ok, err)
	}
	for _, step := range []struct {
		name    string
		do      func() error
		running bool
	}{
		{"stop", func() error { return remote.Stop(t.Context(), PostgreSQL) }, false},
		{"start", func() error { return remote.Start(t.Context(), PostgreSQL) }, true},
		{"kill", func() error { return remote.Signal(t.Context(), PostgreSQL, syscall.SIGKILL) }, false},
		{"start again", func() error { return remote.Start(t.Context(), PostgreSQL) }, true},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if state, err := remote.State(t.Context()); err != nil || state.Services[0].Running != step.running {
			t.Errorf("after %s: running %v, %v; want %v", step.name, state.Services[0].Running, err, step.running)
		}
	}
	if err := remote.Stop(t.Context(), RabbitMQ); !errors.Is(err, ErrUnknownService) {
		t.Errorf("stopping what it does not hold gives %v, want %v", err, ErrUnknownService)
	}
	dir := t.TempDir()
	if err := remote.CopyLogs(dir); err != nil {
		t.Error(err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "postgres.log")); err != nil || !strings.Contains(string(log), "ready to accept connections") {
		t.Errorf("the copied log: %v, %q", err, log)
	}
}

func TestAStackEndsWithItsLifelineAndItsTime(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, state := s.hold(read, "--services", "prometheus", "--lifeline")
	read.Close()
	if _, code := s.run("up", "--services", "prometheus"); code != 6 {
		t.Errorf("a second stack in the foreground: exit %d, want 6", code)
	}
	write.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("after its lifeline ended the stack ends with %v, want success", err)
	}
	if exists(filepath.Dir(state.Addresses.TargetsDir)) {
		t.Error("its data is still there")
	}
	cmd, _ = s.hold(nil, "--services", "prometheus", "--ttl", "100ms")
	if err := cmd.Wait(); err != nil {
		t.Errorf("after its time the stack ends with %v, want success", err)
	}
}
