package loadgen

import (
	"context"
	"time"

	"spillway/internal/timebase"
)

// pacer sleeps until due instants on the run's time base. Instants that are past cost one look at the clock. It belongs
// to one goroutine.
type pacer struct {
	base    *timebase.Base
	stopped <-chan struct{}
	timer   *time.Timer
}

func newPacer(base *timebase.Base, stopped <-chan struct{}) *pacer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &pacer{base: base, stopped: stopped, timer: timer}
}

func (p *pacer) close() { p.timer.Stop() }

// until waits for an instant. It reports false when the offering ends first.
func (p *pacer) until(ctx context.Context, due time.Duration) bool {
	wait := due - p.base.Now()
	if wait <= 0 {
		select {
		case <-p.stopped:
			return false
		case <-ctx.Done():
			return false
		default:
			return true
		}
	}
	p.timer.Reset(wait)
	select {
	case <-p.timer.C:
		return true
	case <-p.stopped:
		return false
	case <-ctx.Done():
		return false
	}
}
