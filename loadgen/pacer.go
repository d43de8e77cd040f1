package loadgen

import (
	"context"
	"time"

	"spillway/internal/timebase"
)

const (
	// quantum is the shortest time between two wake-ups. Arrivals closer together than that are handed over together, at
	// most this much late: at 5,000 a second two or three at a time, at a few hundred each by itself. To be woken for each
	// one would cost more than to send it.
	quantum = 500 * time.Microsecond
	// fine is how long before an instant the sleeping becomes exact. Until then a stop ends it at once, after that when it is
	// over.
	fine = 3 * time.Millisecond
)

// pacer sleeps until due instants on the run's time base. Instants that are past cost one look at the clock. It belongs
// to one goroutine.
type pacer struct {
	base    *timebase.Base
	stopped <-chan struct{}
	timer   *time.Timer
	alarm   Alarm         // nil where there is none
	woken   time.Duration // until when it slept last
}

// Alarm ends short sleeps on time.
type Alarm interface {
	// Sleep sleeps for d. It reports false when it could not.
	Sleep(d time.Duration) bool
	Close()
}

func newPacer(base *timebase.Base, stopped <-chan struct{}, alarm Alarm) *pacer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &pacer{base: base, stopped: stopped, timer: timer, alarm: alarm}
}

func (p *pacer) close() {
	p.timer.Stop()
	if p.alarm != nil {
		p.alarm.Close()
	}
}

// until waits for an instant. It reports false when the offering ends first.
func (p *pacer) until(ctx context.Context, due time.Duration) bool {
	now := p.base.Now()
	if due <= now {
		return p.goOn(ctx)
	}
	p.woken = max(due, p.woken+quantum)
	return p.sleep(ctx, p.woken-now)
}

// sleep dozes until the alarm can take over, or all the time when there is none.
func (p *pacer) sleep(ctx context.Context, d time.Duration) bool {
	if p.alarm == nil {
		return p.doze(ctx, d)
	}
	if d > fine && !p.doze(ctx, d-fine/2) {
		return false
	}
	if left := p.woken - p.base.Now(); left > 0 && !p.alarm.Sleep(left) {
		return p.doze(ctx, left)
	}
	return p.goOn(ctx)
}

func (p *pacer) goOn(ctx context.Context) bool {
	select {
	case <-p.stopped:
		return false
	case <-ctx.Done():
		return false
	default:
		return true
	}
}

// doze sleeps on the runtime's timer, which is late by up to a millisecond in a process that is otherwise idle (Go 1.26,
// epoll).
func (p *pacer) doze(ctx context.Context, d time.Duration) bool {
	p.timer.Reset(d)
	select {
	case <-p.timer.C:
		return true
	case <-p.stopped:
		return false
	case <-ctx.Done():
		return false
	}
}
