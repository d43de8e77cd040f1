package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"spillway/internal/result"
)

// patience bounds every wait of these tests; nothing here takes half of it on two busy cores.
const patience = 90 * time.Second

// call is one command line of spillway.
type call struct {
	binary string   // "" is the suite's
	args   []string // after the program's name
	env    []string // NAME=value, over a clean environment
	stdin  string
	dir    string // working folder; "" is a fresh one
}

// process is a running call.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  buffer // stdout
	err  buffer // stderr
	done chan struct{}
}

// ended is what became of a call.
type ended struct {
	code           int
	stdout, stderr string
}

func (e ended) said() string { return e.stdout + e.stderr }

// start begins a call; the test ends it at the latest.
func start(t *testing.T, c call) *process {
	t.Helper()
	if c.binary == "" {
		c.binary = suite.binary
	}
	if c.dir == "" {
		c.dir = t.TempDir()
	}
	p := &process{t: t, cmd: exec.Command(c.binary, c.args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdin = c.dir, append(cleanEnvironment(), c.env...), strings.NewReader(c.stdin)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the code is read from the state
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended in a test that passed
		<-p.done
	})
	return p
}

// cleanEnvironment is this process's without what spillway would read.
func cleanEnvironment() []string {
	var env []string
	for _, line := range os.Environ() {
		if !strings.HasPrefix(line, "SPILLWAY_") && !strings.HasPrefix(line, "PG") {
			env = append(env, line)
		}
	}
	return env
}

// wait returns when the process has ended.
func (p *process) wait() ended {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-p.done:
	case <-deadline.C:
		p.t.Fatalf("%v does not end:\n%s%s", p.cmd.Args, p.out.String(), p.err.String())
	}
	code := p.cmd.ProcessState.ExitCode()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return ended{code: code, stdout: p.out.String(), stderr: p.err.String()}
}

// awaitOutput returns when the text has been printed.
func (p *process) awaitOutput(text string) {
	p.t.Helper()
	p.await(regexp.MustCompile(regexp.QuoteMeta(text)))
}

// awaitSecond returns when the line of a second of the run, 1 to 9, has been printed, or of a later one: which tenth it
// shows, and whether one is left out, depends on the machine.
func (p *process) awaitSecond(n int) {
	p.t.Helper()
	p.await(regexp.MustCompile(fmt.Sprintf(`(?m)^ *([%d-9]|\d\d)\.\ds `, n)))
}

func (p *process) await(pattern *regexp.Regexp) {
	p.t.Helper()
	eventually(p.t, pattern.String(), func() bool {
		over := false
		select {
		case <-p.done:
			over = true
		default:
		}
		found := pattern.MatchString(p.out.String() + p.err.String())
		if over && !found {
			p.t.Fatalf("ended without %v:\n%s%s", pattern, p.out.String(), p.err.String())
		}
		return found
	})
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// spillway makes one call and returns when it has ended.
func spillway(t *testing.T, c call) ended {
	t.Helper()
	return start(t, c).wait()
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// run is a run of a profile and its result.
type run struct {
	ended
	dir string
	*result.Result
}

// runProfile runs a profile to its end and reads the result, which must be there, with the exit code in it. These tests hold
// accounts and verdicts to what they must be, on a machine that others may keep busy.
func runProfile(t *testing.T, c call, want int) run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	c.args = slices.Concat(c.args, []string{"-o", dir}, busy)
	return readRun(t, spillway(t, c), dir, want)
}

// busy are the flags of a run that need not be a measurement.
var busy = []string{"--set", "expect.busy_machine=true"}

// readRun reads the result of a run that has ended.
func readRun(t *testing.T, end ended, dir string, want int) run {
	t.Helper()
	if end.code != want {
		t.Fatalf("exit %d, want %d\n%s", end.code, want, end.said())
	}
	res, err := result.Read(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, end.said())
	}
	if res.Run.ExitCode != want {
		t.Errorf("result.json says exit %d, the process %d", res.Run.ExitCode, want)
	}
	return run{end, dir, res}
}

// finding returns the message of a finding; the test fails without it.
func (r run) finding(t *testing.T, code string) string {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code {
			if !strings.Contains(r.stdout, f.Message) {
				t.Errorf("the summary does not name %q:\n%s", f.Message, r.stdout)
			}
			return f.Message
		}
	}
	t.Fatalf("no finding %q in %+v\n%s", code, r.Findings, r.said())
	return ""
}

// noErrors fails for findings that decide the verdict.
func (r run) noErrors(t *testing.T) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Severity == result.Error {
			t.Errorf("finding %s: %s", f.Code, f.Message)
		}
	}
}

// buffer is a bytes.Buffer that one goroutine writes while others read.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
