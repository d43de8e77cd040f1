package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// State is what a registered stack says of itself. It holds credentials.
type State struct {
	PID       int       `json:"pid"` // the supervisor
	StartedAt time.Time `json:"started_at"`
	EndsAt    time.Time `json:"ends_at,omitzero"` // when its time to live ends; zero for never
	Source    Source    `json:"source"`
	Suite     string    `json:"suite,omitempty"`
	Addresses Addresses `json:"addresses"`
	Services  []Status  `json:"services"`
	Problem   string    `json:"problem,omitempty"` // why the services' states could not be had; empty when they could
}

// SuperviseOptions says how a stack is held and found. The zero value holds it until asked to end, under the usual
// address.
type SuperviseOptions struct {
	Stack    Options
	TTL      time.Duration // time to live; 0 means none
	Socket   string        // control socket; empty means the one that Attach looks at
	Lifeline io.Reader     // the stack ends when this does; nil for none. A reader that never ends is left behind
	Ready    func(State)   // called once when all is up; may be nil
}

const (
	// socketPathMax is what a socket address holds on Linux, less room for the closing zero and other systems' shorter one.
	socketPathMax = 100
	// successionWait is how long a new supervisor waits for one that is just ending.
	successionWait = 3 * time.Second
	// answerWait bounds the last answers of an ending supervisor.
	answerWait = 2 * time.Second
)

// held is what a supervisor can hold: *Stack and *Compose.
type held interface {
	Control
	Source() Source
	Suite() string
	// Status returns the state of each service; also with an error, as far as it goes.
	Status(ctx context.Context) ([]Status, error)
	// Log returns the whole log of a service so far; the caller closes it.
	Log(ctx context.Context, service string) (io.ReadCloser, error)
	// Close ends the servers and removes their data.
	Close(ctx context.Context) error
}

// Supervise starts a stack, serves its control socket, and ends both when ctx ends, the time to live is over, the
// lifeline ends or a client asks for it. ErrAlreadyUp means that another supervisor has the socket.
func Supervise(ctx context.Context, o SuperviseOptions) error {
	socket, err := socketPath(o.Socket)
	if err != nil {
		return err
	}
	lock, err := register(ctx, socket)
	if err != nil {
		return err
	}
	defer lock.Close()
	s, err := startHeld(ctx, o.Stack)
	if err != nil {
		return err
	}
	sup := newSupervisor(s, o)
	// The context has ended when the usual reason applies; an orderly stop is bounded by itself.
	err = sup.serve(ctx, socket, o)
	closed := s.Close(context.WithoutCancel(ctx))
	sup.finish(closed)
	return errors.Join(err, closed)
}

// startHeld starts servers from the source that Pick returns.
func startHeld(ctx context.Context, o Options) (held, error) {
	picked, err := Pick(ctx, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(o.progress(), "servers: %s\n", picked)
	o.Source = picked.Source
	if o.Source == SourceCompose {
		return StartCompose(ctx, o)
	}
	return Start(ctx, o)
}

// socketPath returns the control socket's path, with its folder made.
func socketPath(path string) (string, error) {
	if path == "" {
		cache, err := CacheDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(cache, "stack.sock")
	}
	if len(path) > socketPathMax {
		return "", fmt.Errorf("control socket %s: longer than %d bytes; set XDG_CACHE_HOME to a shorter folder", path, socketPathMax)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("folder of the control socket: %w", err)
	}
	return path, nil
}

// register takes the lock that goes with a socket.
func register(ctx context.Context, socket string) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, successionWait, ErrAlreadyUp)
	defer cancel()
	lock, err := waitLock(ctx, socket+".lock", func() {})
	if err != nil {
		return nil, fmt.Errorf("register the stack: %w", err)
	}
	caller := callerAccount() // or the caller could never again start one without sudo
	if err := lock.Chown(caller.uid, caller.gid); err != nil {
		return nil, errors.Join(fmt.Errorf("register the stack: %w", err), lock.Close())
	}
	return lock, nil
}

// supervisor answers for a stack on a socket. Its fields are set before it serves.
type supervisor struct {
	stack   held
	started time.Time
	ends    time.Time
	down    chan struct{} // a client asks for the end; one place, further requests find it full
	closed  chan struct{} // closed by finish
	result  error         // of closing the stack; read after closed only
	server  *http.Server
}

func newSupervisor(s held, o SuperviseOptions) *supervisor {
	sup := &supervisor{stack: s, started: time.Now(), down: make(chan struct{}, 1), closed: make(chan struct{})}
	if o.TTL > 0 {
		sup.ends = sup.started.Add(o.TTL)
	}
	sup.server = &http.Server{Handler: sup.routes(), ReadHeaderTimeout: answerWait}
	return sup
}

// serve returns when it is time to close the stack. The socket still answers then, so that whoever asked for the end
// hears how it went.
func (s *supervisor) serve(ctx context.Context, socket string, o SuperviseOptions) error {
	listener, err := listenPrivately(ctx, socket)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- s.server.Serve(listener) }()
	if o.Ready != nil {
		o.Ready(s.state(ctx))
	}
	var expired <-chan time.Time // nil, and so never ready, without a time to live
	if o.TTL > 0 {
		timer := time.NewTimer(o.TTL)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-ctx.Done():
	case <-expired:
	case <-ended(o.Lifeline):
	case <-s.down:
	case err := <-failed:
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// finish tells waiting clients how the end went, and closes the socket.
func (s *supervisor) finish(result error) {
	s.result = result
	close(s.closed)
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	_ = s.server.Shutdown(ctx) // a client that does not read its answer must not keep us
}

// listenPrivately replaces what a dead supervisor left and opens the socket to the caller alone. The lock is held, so
// nobody listens on the old one.
func listenPrivately(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("old control socket: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	caller := callerAccount()
	if err := errors.Join(os.Chmod(socket, 0o600), os.Chown(socket, caller.uid, caller.gid)); err != nil {
		return nil, errors.Join(fmt.Errorf("rights of the control socket: %w", err), listener.Close())
	}
	return listener, nil
}

// ended returns a channel that closes when the reader ends; nil, which never does, for no reader.
func ended(lifeline io.Reader) <-chan struct{} {
	if lifeline == nil {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, lifeline) // any end is the end
		close(gone)
	}()
	return gone
}

// state asks the services. One that cannot be had is shown, and does not keep the stack from being found and ended.
func (s *supervisor) state(ctx context.Context) State {
	services, err := s.stack.Status(ctx)
	state := State{
		PID: os.Getpid(), StartedAt: s.started, EndsAt: s.ends, Source: s.stack.Source(), Suite: s.stack.Suite(),
		Addresses: s.stack.Addresses(), Services: services,
	}
	if err != nil {
		state.Problem = err.Error()
	}
	return state
}
