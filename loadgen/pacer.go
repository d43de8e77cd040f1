package loadgen

import (
	"context"
	"time"

	"spillway/internal/timebase"
)

const (
	// short is up to which wait the runtime's timer does: a process that is woken so often is never quite asleep, and its timers
	// are on time. The alarm would cost a third more CPU time a message there (5,000 a second, 2 cores).
	short = 500 * time.Microsecond
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
	alarm   Alarm // nil where there is none
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
	switch wait := due - p.base.Now(); {
	case wait <= 0:
		return p.goOn(ctx)
	case wait <= short || p.alarm == nil:
		return p.doze(ctx, wait)
	case wait > fine && !p.doze(ctx, wait-fine/2):
		return false
	}
	if left := due - p.base.Now(); left > 0 && !p.alarm.Sleep(left) {
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
