package fault

import (
	"context"
	"fmt"
	"time"

	"spillway/internal/broker"
	"spillway/internal/stack"
)

// Server is one of the run's servers, as the faults that break it see it.
type Server struct {
	// Service is its name in the stack.
	Service string
	// Control is the stack that it belongs to; nil when it was given by address, and then it is not ours to break.
	Control stack.Control
	// Ping uses the server once.
	Ping func(ctx context.Context) error
	// Marks returns what a fault of this server leaves behind.
	Marks func() []Mark
}

func (s *Server) available() error {
	if s.Control == nil {
		return fmt.Errorf("%w: %s was given by address, and spillway breaks only servers that it started; "+
			"leave %s out, or start a stack with `spillway stack up`", ErrUnavailable, s.Service, flagOf(s.Service))
	}
	return nil
}

// flagOf returns the flag by which a person gives the address of a service.
func flagOf(service string) string {
	if service == stack.PostgreSQL {
		return "--postgres"
	}
	return "--uri"
}

const (
	// pingInterval is how often a healing server is asked: recovery is measured in tenths of a second.
	pingInterval = 50 * time.Millisecond
	// pingTimeout bounds one question. A server that has just been stopped or frozen may leave it unanswered for ever.
	pingTimeout = 5 * time.Second
)

// healthy returns when what was broken was used with success.
func healthy(ctx context.Context, use func(context.Context) error) error {
	for {
		err := ping(ctx, use)
		if err == nil {
			return nil
		}
		if !broker.Wait(ctx, pingInterval) {
			return err
		}
	}
}

func ping(ctx context.Context, use func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return use(ctx)
}

// ServerFault is a fault of one server, which is held in trouble by the stack. A server that is not well before it is broken is
// not broken: nothing could be proved.
type ServerFault struct {
	Name      string
	Server    Server
	Trouble   stack.Trouble
	NotBefore time.Time // the trouble waits for it; zero for none
	// Choose returns which of several servers is broken, once they were seen well; nil for the Server's own.
	Choose func(ctx context.Context) (service string, err error)
	// Look is called at the end of the window, while the trouble lasts; nil for nothing.
	Look func(ctx context.Context)

	release stack.Release // nil while there is no trouble
}

// Kind implements Fault.
func (f *ServerFault) Kind() string { return f.Name }

// Available implements Fault.
func (f *ServerFault) Available() error { return f.Server.available() }

// Inject implements Fault.
func (f *ServerFault) Inject(ctx context.Context) error {
	if !broker.Wait(ctx, time.Until(f.NotBefore)) {
		return context.Cause(ctx)
	}
	if err := ping(ctx, f.Server.Ping); err != nil {
		return fmt.Errorf("%s was not well before: %w", f.Server.Service, err)
	}
	if f.Choose != nil {
		service, err := f.Choose(ctx)
		if err != nil {
			return err
		}
		f.Server.Service = service
	}
	var err error
	f.release, err = f.Server.Control.Hold(ctx, f.Server.Service, f.Trouble)
	return err
}

// Heal implements Fault: it ends the trouble and returns when the server was used with success.
func (f *ServerFault) Heal(ctx context.Context) error {
	if f.release != nil && f.Look != nil {
		f.Look(ctx)
	}
	if f.release != nil {
		if err := f.release(ctx); err != nil {
			return err
		}
		f.release = nil
	}
	return healthy(ctx, f.Server.Ping)
}

// Marks implements Fault.
func (f *ServerFault) Marks() []Mark { return f.Server.Marks() }
