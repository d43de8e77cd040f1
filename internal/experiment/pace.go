package experiment

import (
	"sync/atomic"
	"time"

	"spillway/internal/event"
)

// pace counts the first publishes in each whole second of the measured load, by the instant of sending: whether the rate
// was kept, second by second. The rows of the series cannot say so, since they end when the probe looks. It is safe for
// concurrent use.
type pace struct {
	event.NopLoad
	start   time.Duration // of the measured load
	seconds []atomic.Int64
}

func newPace(start, load time.Duration) *pace {
	return &pace{start: start, seconds: make([]atomic.Int64, load/time.Second)}
}

// Sent implements event.LoadObserver.
func (p *pace) Sent(e event.Sent) {
	since := e.At - p.start
	if e.Republish || since < 0 {
		return
	}
	if i := int(since / time.Second); i < len(p.seconds) {
		p.seconds[i].Add(1)
	}
}

// until returns the counts of the seconds that were over when the offering ended.
func (p *pace) until(end time.Duration) []int64 {
	whole := min(len(p.seconds), int(max(0, end-p.start)/time.Second))
	out := make([]int64, whole)
	for i := range out {
		out[i] = p.seconds[i].Load()
	}
	return out
}
