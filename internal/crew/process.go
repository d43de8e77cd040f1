package crew

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// process is one child.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer
	orders *gob.Encoder // of the seat, which guards it
	out    io.ReadCloser
	words  tail   // of its standard error
	last   status // what it told last; guarded by the seat

	arrived chan reached  // room for one: no more is armed than one
	over    chan struct{} // closed when it has ended
	ended   chan error    // how
	killed  atomic.Bool   // on purpose
	told    atomic.Int64  // when it told something last, an offset on the base; 0 is never
}

// start starts a child. The thread that does it must outlive the child, whose death signal follows it (Linux), so that thread
// belongs to the goroutine that waits.
func start(executable string) (*process, error) {
	c := &process{arrived: make(chan reached, 1), over: make(chan struct{}), ended: make(chan error, 1)}
	c.cmd = exec.CommandContext(context.Background(), executable) // it is killed by those who know whether that is on purpose
	c.cmd.Args = []string{"spillway", "worker"}                   // what a list of processes shows
	c.cmd.Env = append(environment(), childVariable+"=1")
	c.cmd.Stderr = &c.words
	c.cmd.SysProcAttr = attributes()
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe() // not StdoutPipe: Wait would close it before all was read
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout = write
	c.in, c.orders, c.out = in, gob.NewEncoder(in), read
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.ended <- c.cmd.Wait()
			close(c.over)
		}
	}()
	err = <-started
	_ = write.Close() // the child has its own
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	return c, nil
}

// environment is what a child gets of ours: nothing that may hold a password.
func environment() (kept []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOMAXPROCS", "GOGC", "GODEBUG", "GOMEMLIMIT", "GOTRACEBACK", "SSL_CERT_FILE", "SSL_CERT_DIR":
			kept = append(kept, v)
		}
	}
	return kept
}

// wait returns how the child ended: nil when it was told to, or was killed on purpose.
func (c *process) wait() error {
	err := <-c.ended
	_ = c.out.Close()
	_ = c.in.Close()
	if err == nil || c.killed.Load() {
		return nil
	}
	return fmt.Errorf("%w: %w: %s", ErrDied, err, c.words.String())
}

func (c *process) kill() { _ = c.cmd.Process.Kill() } // it may be gone already

func (c *process) killOnPurpose() {
	c.killed.Store(true)
	c.kill()
}

// reach notes that a delivery has come to the armed point.
func (c *process) reach(r reached) {
	select {
	case c.arrived <- r:
	default: // one is there already, and the kill is under way
	}
}

// tailBytes is how much of a child's last words is kept.
const tailBytes = 4096

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns the last line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
