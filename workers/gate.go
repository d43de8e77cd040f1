package workers

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/workers/breaker"
)

// gate stands in front of every handler: a rate limit towards the database and, behind it, the circuit breaker. A
// delivery that waits here is held, not started: its attempt is not counted, and it goes back untouched if its channel
// ends. One gate serves all workers; it is safe for concurrent use.
type gate struct {
	base     *timebase.Base
	observer event.BreakerObserver
	limit    *rate.Limiter // nil is none

	mu      sync.Mutex       // guards all below
	breaker *breaker.Breaker // nil is none
	state   breaker.State
	changed chan struct{} // closed, and replaced, whenever a call of Done or Cancel may have opened a place
}

func newGate(base *timebase.Base, observer event.BreakerObserver, limit *rate.Limiter, b *breaker.Breaker) *gate {
	return &gate{base: base, observer: observer, limit: limit, breaker: b, changed: make(chan struct{})}
}

// pass is the permission to run one handler. The holder calls exactly one of report and withdraw.
type pass struct {
	gate   *gate
	ticket breaker.Ticket
}

// enter waits for permission, or for the end of ctx. The rate limit comes first, so that nobody starts on a permission
// that was given before the breaker opened.
func (g *gate) enter(ctx context.Context) (pass, error) {
	if g.limit != nil {
		if err := g.limit.Wait(ctx); err != nil {
			return pass{}, err
		}
	}
	if g.breaker == nil {
		return pass{}, ctx.Err()
	}
	for {
		if err := ctx.Err(); err != nil {
			return pass{}, err
		}
		ticket, ok, wait, changed := g.ask()
		if ok {
			return pass{g, ticket}, nil
		}
		if err := g.wait(ctx, wait, changed); err != nil {
			return pass{}, err
		}
	}
}

func (g *gate) ask() (t breaker.Ticket, ok bool, wait time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.base.Now()
	t, ok, wait = g.breaker.Allow(now)
	g.announce(now)
	return t, ok, wait, g.changed
}

// maxGateWait bounds a wait for which the breaker could name no time: a change ends it sooner.
const maxGateWait = time.Second

func (g *gate) wait(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	if d <= 0 {
		d = maxGateWait
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// report tells the breaker how the handler fared.
func (p pass) report(success bool) {
	if p.gate != nil {
		p.gate.update(func(now time.Duration) { p.gate.breaker.Done(p.ticket, success, now) })
	}
}

// withdraw gives the permission back: the handler did not run, or its result says nothing of the database.
func (p pass) withdraw() {
	if p.gate != nil {
		p.gate.update(func(now time.Duration) { p.gate.breaker.Cancel(p.ticket, now) })
	}
}

func (g *gate) update(change func(now time.Duration)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.base.Now()
	before := g.breaker.State(now)
	change(now)
	if before != breaker.Closed || g.breaker.State(now) != before { // closed lets all through: nobody waits
		close(g.changed)
		g.changed = make(chan struct{})
	}
	g.announce(now)
}

// announce tells of a change of state; the caller holds the lock.
func (g *gate) announce(now time.Duration) {
	if s := g.breaker.State(now); s != g.state {
		g.state = s
		g.observer.BreakerChanged(s.String(), now)
	}
}
