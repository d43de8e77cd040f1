package fault

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
)

// Kinds of Repeated faults.
const (
	// KindCloseConnections lets the broker close connections of the run. The other side has done nothing wrong: what was in flight
	// has no answer, and what was delivered and not acked comes again.
	KindCloseConnections = "broker.close-connections"
	// KindWorkersKill ends worker processes by SIGKILL when a delivery has come to a point.
	KindWorkersKill = "workers.kill"
)

// NoWayToClose is why connections cannot be closed by a broker that is not ours, without the management API.
const NoWayToClose = "closing connections takes a broker of our own, or the management API: set topology.management to full and give --management"

// Repeated is a fault that does one thing several times over its window. Nothing has to be mended after it by the fault: opening
// connections again, or starting processes, is the business of those who lost them.
type Repeated struct {
	Name string
	// Unavailable says why it cannot be had here, in words that follow "is not available here: "; "" when it can.
	Unavailable string
	// Do does it once, and reports whether there was anything to do it to. It is asked again until there is.
	Do    func(ctx context.Context) (bool, error)
	Times int           // rounds, evenly over the window
	For   time.Duration // of the window
	// Counts returns the marks, besides the rounds.
	Counts func() []Mark

	done  atomic.Int64 // rounds in which something was there
	end   context.CancelFunc
	cut   func() bool   // reports whether the run was stopped meanwhile
	ended chan struct{} // closed after the last round
	err   error         // of a round; read after ended
}

// overrun bounds how long rounds that are due may go on after the window: on a busy machine a round takes seconds.
const overrun = 10 * time.Second

// Kind implements Fault.
func (r *Repeated) Kind() string { return r.Name }

// Available implements Fault.
func (r *Repeated) Available() error {
	if r.Unavailable != "" {
		return fmt.Errorf("%w: %s", ErrUnavailable, r.Unavailable)
	}
	return nil
}

// Inject implements Fault: it starts the rounds, the first of them at once.
func (r *Repeated) Inject(ctx context.Context) error {
	run := ctx
	r.cut = func() bool { return run.Err() != nil }
	ctx, r.end = context.WithCancel(ctx)
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		r.err = r.repeat(ctx)
	}()
	return nil
}

func (r *Repeated) repeat(ctx context.Context) error {
	began := time.Now()
	for i := range r.Times {
		due := r.For * time.Duration(i) / time.Duration(r.Times)
		if i > 0 && !broker.Wait(ctx, due-time.Since(began)) {
			return nil
		}
		if err := r.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// round does it once, and waits until there is something to do it to. The management API knows of a connection with its first
// statistics only, up to 5 s after it was opened (RabbitMQ 4.3).
func (r *Repeated) round(ctx context.Context) error {
	for {
		some, err := r.Do(ctx)
		if some && err == nil {
			r.done.Add(1)
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

// Heal implements Fault: it ends the rounds. Those that are late may still come, for as long as overrun.
func (r *Repeated) Heal(ctx context.Context) error {
	if r.end == nil {
		return errNeverInjected
	}
	late, cancel := context.WithTimeout(ctx, overrun)
	defer cancel()
	select {
	case <-r.ended:
	case <-late.Done():
	}
	r.end()
	<-r.ended
	if n := r.done.Load(); r.err == nil && n < int64(r.Times) && !r.cut() {
		return fmt.Errorf("%d of %d rounds: %w", n, r.Times, errFewRounds)
	}
	return r.err
}

// Marks implements Fault.
func (r *Repeated) Marks() []Mark {
	return append(r.Counts(), Mark{Name: "rounds", Value: float64(r.done.Load()), Told: true})
}
