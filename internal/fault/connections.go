package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
)

// KindCloseConnections is the kind of CloseConnections.
const KindCloseConnections = "broker.close-connections"

// CloseConnections lets the broker close connections of the run, several times over its window. The other side has done nothing
// wrong: what was in flight has no answer, and what was delivered and not acked comes again.
type CloseConnections struct {
	// Close closes the connections that the broker knows of and returns how many those were. nil when the management API is
	// not to be used.
	Close func(ctx context.Context) (int, error)
	Times int           // rounds, evenly over the window
	For   time.Duration // of the window
	// Reconnects returns how many connections were opened again so far.
	Reconnects func() int64

	closed atomic.Int64
	end    context.CancelFunc
	rounds sync.WaitGroup
	err    error // of a round; read after rounds
}

// Kind implements Fault.
func (*CloseConnections) Kind() string { return KindCloseConnections }

// Available implements Fault.
func (c *CloseConnections) Available() error {
	if c.Close == nil {
		return fmt.Errorf("%w: closing connections takes the management API; set topology.management to full and give --management", ErrUnavailable)
	}
	return nil
}

// Inject implements Fault: it starts the rounds, the first of them at once.
func (c *CloseConnections) Inject(ctx context.Context) error {
	ctx, c.end = context.WithCancel(ctx)
	c.rounds.Go(func() { c.err = c.repeat(ctx) })
	return nil
}

func (c *CloseConnections) repeat(ctx context.Context) error {
	for range c.Times {
		if err := c.round(ctx); err != nil {
			return err
		}
		if !broker.Wait(ctx, c.For/time.Duration(c.Times)) {
			return nil
		}
	}
	return nil
}

// round closes what there is. A connection is known to the API with its first statistics, so a round soon after another one
// may have to wait until there is something to close.
func (c *CloseConnections) round(ctx context.Context) error {
	for {
		n, err := c.Close(ctx)
		c.closed.Add(int64(n))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case n > 0 || !broker.Wait(ctx, pingInterval):
			return nil
		}
	}
}

var errNeverInjected = errors.New("the fault was never injected")

// Heal implements Fault: it ends the rounds. Opening connections again is the business of those who lost them.
func (c *CloseConnections) Heal(context.Context) error {
	if c.end == nil {
		return errNeverInjected
	}
	c.end()
	c.rounds.Wait()
	return c.err
}

// Marks implements Fault.
func (c *CloseConnections) Marks() []Mark {
	return []Mark{
		{Name: "reconnects", Value: float64(c.Reconnects())},
		{Name: "connections_closed", Value: float64(c.closed.Load())},
	}
}
