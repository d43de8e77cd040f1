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
	// Close closes the connections and reports whether there were any. nil when there is no way to.
	Close func(ctx context.Context) (bool, error)
	Times int           // rounds, evenly over the window
	For   time.Duration // of the window
	// Reconnects returns how many connections were opened again so far.
	Reconnects func() int64

	closed atomic.Int64 // rounds that closed something
	end    context.CancelFunc
	cut    func() bool // reports whether the run was stopped meanwhile
	rounds sync.WaitGroup
	err    error // of a round; read after rounds
}

// Kind implements Fault.
func (*CloseConnections) Kind() string { return KindCloseConnections }

// Available implements Fault.
func (c *CloseConnections) Available() error {
	if c.Close == nil {
		return fmt.Errorf("%w: closing connections takes a broker of our own, or the management API: set topology.management to full and give --management", ErrUnavailable)
	}
	return nil
}

// Inject implements Fault: it starts the rounds, the first of them at once.
func (c *CloseConnections) Inject(ctx context.Context) error {
	run := ctx
	c.cut = func() bool { return run.Err() != nil }
	ctx, c.end = context.WithCancel(ctx)
	c.rounds.Go(func() { c.err = c.repeat(ctx) })
	return nil
}

func (c *CloseConnections) repeat(ctx context.Context) error {
	began := time.Now()
	for i := range c.Times {
		due := c.For * time.Duration(i) / time.Duration(c.Times)
		if i > 0 && !broker.Wait(ctx, due-time.Since(began)) {
			return nil
		}
		if err := c.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// round closes what there is, and waits until there is something. The management API knows of a connection with its first
// statistics only, up to 5 s after it was opened (RabbitMQ 4.3).
func (c *CloseConnections) round(ctx context.Context) error {
	for {
		some, err := c.Close(ctx)
		if some && err == nil {
			c.closed.Add(1)
		}
		if err != nil && ctx.Err() == nil { // one that the end of the window cut short is no failure
			return err
		}
		if some || !broker.Wait(ctx, pingInterval) {
			return nil
		}
	}
}

var (
	errNeverInjected = errors.New("the fault was never injected")
	errFewRounds     = errors.New("the window was over before all rounds were: give it more time, or ask for fewer")
)

// Heal implements Fault: it ends the rounds. Opening connections again is the business of those who lost them.
func (c *CloseConnections) Heal(context.Context) error {
	if c.end == nil {
		return errNeverInjected
	}
	c.end()
	c.rounds.Wait()
	if n := c.closed.Load(); c.err == nil && n < int64(c.Times) && !c.cut() {
		return fmt.Errorf("%d of %d rounds: %w", n, c.Times, errFewRounds)
	}
	return c.err
}

// Marks implements Fault.
func (c *CloseConnections) Marks() []Mark {
	return []Mark{
		{Name: "reconnects", Value: float64(c.Reconnects())},
		{Name: "rounds", Value: float64(c.closed.Load()), Told: true},
	}
}
