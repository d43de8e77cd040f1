package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyPoll is how often a starting server is asked; it bounds the error of a measured start.
	readyPoll = 100 * time.Millisecond
	// stopGrace is how long an orderly end may take. PostgreSQL needs well below 1 s here; RabbitMQ gives clients of its
	// management port 5 s before it ends, and may do so on a busy machine.
	stopGrace = 20 * time.Second
	// killGrace is how long the kernel may take to end a namespace.
	killGrace = 5 * time.Second
	// startAttempts bounds how often other ports are tried. Only a stranger can take a reserved one, which is rare already.
	startAttempts = 3
)

// service runs one server: at most one process at a time.
type service struct {
	server     server
	data       *dataDir
	launcher   *launcher
	executable string
	timeout    time.Duration // bound for readiness
	reserve    func(n int) (*reservation, error)
	died       func(Death) // told when the server ends unasked

	operation sync.Mutex   // held for the length of a start or stop, so that they come one by one
	ports     *reservation // owned by first, and by close when all is over

	mu      sync.Mutex // guards the fields below
	process *process   // nil before the first start
	version string
}

// first starts the server for the first time, on ports that it keeps.
func (s *service) first(ctx context.Context) error {
	s.operation.Lock()
	defer s.operation.Unlock()
	var err error
	for range startAttempts {
		s.ports.release()
		if s.ports, err = s.reserve(s.server.portCount()); err != nil {
			return err
		}
		if err = s.server.prepare(s.ports.ports); err != nil {
			return err
		}
		if err = s.up(ctx); err == nil || !anyTaken(s.ports.ports) {
			return err
		}
	}
	return err
}

// anyTaken is asked after the server has ended: whoever listens now is somebody else.
func anyTaken(ports []int) bool {
	for _, p := range ports {
		if portTaken(p) {
			return true
		}
	}
	return false
}

// start brings a stopped server back.
func (s *service) start(ctx context.Context) error {
	s.operation.Lock()
	defer s.operation.Unlock()
	if s.running() != nil {
		return nil
	}
	return s.up(ctx)
}

// up sets up where needed, starts the server and waits until it is ready. After an error nothing of it runs.
func (s *service) up(ctx context.Context) error {
	if spec, needed := s.server.setup(); needed {
		if err := s.runToEnd(ctx, spec); err != nil {
			return s.explain(err)
		}
	}
	p, err := s.launch(s.server.spec())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	version, err := s.waitReady(ctx, p)
	if err != nil {
		return s.explain(errors.Join(err, s.down(context.WithoutCancel(ctx), p)))
	}
	s.mu.Lock()
	s.version = version
	s.mu.Unlock()
	go s.watch(p)
	return nil
}

// watch tells of a server that was ready and ends unasked. It ends with the process.
func (s *service) watch(p *process) {
	<-p.ended
	if !p.ordered.Load() {
		s.died(Death{Service: s.server.name(), Err: endOf(p)})
	}
}

func (s *service) launch(spec childSpec) (*process, error) {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", s.server.name(), err)
	}
	defer log.Close() // the child has its own copy
	return s.launcher.launch(s.executable, s.server.name(), spec, log, s.data.lock)
}

func (s *service) logPath() string { return s.data.host(s.server.name() + ".log") }

func (s *service) runToEnd(ctx context.Context, spec childSpec) error {
	p, err := s.launch(spec)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%w: set-up: %w", ErrNotReady, p.err)
		}
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.kill(p))
	}
}

// waitReady asks until the server answers, ends, or the bound is reached.
func (s *service) waitReady(ctx context.Context, p *process) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	var a Addresses
	s.server.addresses(&a)
	for {
		version, err := probe(ctx, s.server.name(), a)
		if err == nil {
			err = s.server.confirm(ctx)
		}
		if err == nil {
			return version, nil
		}
		select {
		case <-p.ended:
			return "", fmt.Errorf("%w: it ended (%w)", ErrNotReady, endOf(p))
		case <-ctx.Done():
			return "", fmt.Errorf("%w within %v: %w; last answer: %w", ErrNotReady, s.timeout, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

var errEndedCleanly = errors.New("exit status 0")

// endOf says how a process ended. Code 128 + n is how the first process passes on a server's end by signal n.
func endOf(p *process) error {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return errEndedCleanly
	case errors.As(p.err, &exit) && exit.ExitCode() > 128:
		return fmt.Errorf("%w (%v)", p.err, syscall.Signal(exit.ExitCode()-128))
	default:
		return p.err
	}
}

// explain adds whose error it is, and the end of the log.
func (s *service) explain(err error) error {
	return fmt.Errorf("%s: %w\nthe end of its log:\n%s", s.server.name(), err, tail(s.logPath(), logTail))
}

// stop ends the server; one that does not run is no error.
func (s *service) stop(ctx context.Context) error {
	s.operation.Lock()
	defer s.operation.Unlock()
	p := s.running()
	if p == nil {
		return nil
	}
	return s.down(ctx, p)
}

// admin runs the server's administration tool to its end.
func (s *service) admin(ctx context.Context, args []string) error {
	spec, ok := s.server.admin(args)
	if !ok {
		return fmt.Errorf("an administration tool of %s: %w", s.server.name(), errors.ErrUnsupported)
	}
	p, err := s.launch(spec)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("administer %s (%s): %w", s.server.name(), strings.Join(args, " "), endOf(p))
		}
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.kill(p))
	}
}

// release gives the ports back; the server must have stopped for good.
func (s *service) release() { s.ports.release() }

// down asks for an orderly end and forces one after the grace, or as soon as the context ends.
func (s *service) down(ctx context.Context, p *process) error {
	p.ordered.Store(true)
	_ = p.cmd.Process.Signal(s.server.stopSignal()) // gone already is as good
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.ended:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	return s.kill(p)
}

var errUnkillable = errors.New("still there after SIGKILL")

// kill ends the namespace's first process, and with it all others.
func (s *service) kill(p *process) error {
	p.ordered.Store(true)
	_ = p.cmd.Process.Kill() // gone already is as good
	grace := time.NewTimer(killGrace)
	defer grace.Stop()
	select {
	case <-p.ended:
		return nil
	case <-grace.C:
		return fmt.Errorf("%s: %w", s.server.name(), errUnkillable)
	}
}

// signal passes one signal on. A stop must reach every process: the first process of a namespace cannot be stopped for
// its children.
func (s *service) signal(sig syscall.Signal) error {
	p := s.running()
	if p == nil {
		return fmt.Errorf("signal %v to %s: %w", sig, s.server.name(), os.ErrProcessDone)
	}
	switch sig {
	case syscall.SIGKILL:
		return s.kill(p)
	case syscall.SIGSTOP:
		return freeze(p.pid())
	case syscall.SIGCONT:
		for _, pid := range descendants(p.pid()) {
			_ = syscall.Kill(pid, sig) // one that has just ended needs no signal
		}
		return nil
	default:
		if endsServer(sig) {
			p.ordered.Store(true)
		}
		return p.cmd.Process.Signal(sig)
	}
}

// descendants returns the processes below pid, nearest first.
func descendants(pid int) []int {
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", queue[0]))
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil {
				continue // the thread has ended
			}
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil {
					all, queue = append(all, child), append(queue, child)
				}
			}
		}
	}
	return all
}

// running returns the process if there is a live one, else nil.
func (s *service) running() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.alive() {
		return nil
	}
	return s.process
}

func (s *service) status() Status {
	st := Status{Service: s.server.name()}
	if p := s.running(); p != nil {
		st.Running, st.PID = true, p.pid()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Version = s.version
	return st
}
