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
			"leave its address out, or start a stack with `spillway stack up`", ErrUnavailable, s.Service)
	}
	return nil
}

const (
	// pingInterval is how often a healing server is asked: recovery is measured in tenths of a second.
	pingInterval = 50 * time.Millisecond
	// pingTimeout bounds one question. A server that has just been stopped or frozen may leave it unanswered for ever.
	pingTimeout = 5 * time.Second
)

// healthy returns when the server was used with success.
func (s *Server) healthy(ctx context.Context) error {
	for {
		err := s.ping(ctx)
		if err == nil {
			return nil
		}
		if !broker.Wait(ctx, pingInterval) {
			return err
		}
	}
}

func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return s.Ping(ctx)
}

// ServerFault is a fault of one server: two orders, one that breaks it and one that mends it. A server that is not well before
// it is broken is not broken: nothing could be proved.
type ServerFault struct {
	Name        string
	Server      Server
	Break, Mend func(ctx context.Context, c stack.Control, service string) error
}

// Kind implements Fault.
func (f *ServerFault) Kind() string { return f.Name }

// Available implements Fault.
func (f *ServerFault) Available() error { return f.Server.available() }

// Inject implements Fault.
func (f *ServerFault) Inject(ctx context.Context) error {
	if err := f.Server.ping(ctx); err != nil {
		return fmt.Errorf("%s was not well before: %w", f.Server.Service, err)
	}
	return f.Break(ctx, f.Server.Control, f.Server.Service)
}

// Heal implements Fault: it mends the server and returns when that was used with success.
func (f *ServerFault) Heal(ctx context.Context) error {
	if err := f.Mend(ctx, f.Server.Control, f.Server.Service); err != nil {
		return err
	}
	return f.Server.healthy(ctx)
}

// Marks implements Fault.
func (f *ServerFault) Marks() []Mark { return f.Server.Marks() }
