package publish

import (
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/timebase"
)

// Supply numbers the messages of a closed load for all its publishers together: there is always a next one, due the moment
// it is asked for, until the time is up or the load is stopped. It is safe for concurrent use.
type Supply struct {
	base     *timebase.Base
	start    time.Duration
	measured time.Duration // end of the warm-up
	end      time.Duration
	next     atomic.Int64
	once     sync.Once
	ended    chan struct{}
}

// NewSupply returns a supply from start on, for as long as span, of which the first part is warm-up. Nothing ends it by
// itself while nobody asks: whoever waits for Ended calls End in time.
func NewSupply(base *timebase.Base, start, warmup, span time.Duration) *Supply {
	return &Supply{base: base, start: start, measured: start + warmup, end: start + span, ended: make(chan struct{})}
}

// Next returns the next message, due now, or false when there are no more.
func (s *Supply) Next() (Arrival, bool) {
	now := s.base.Now()
	if now >= s.end {
		s.End()
	}
	select {
	case <-s.ended:
		return Arrival{}, false
	default:
		return Arrival{Seq: s.next.Add(1) - 1, Scheduled: now, Warmup: now < s.measured}, true
	}
}

// End ends the supply. It may be called more than once.
func (s *Supply) End() { s.once.Do(func() { close(s.ended) }) }

// Ended is closed when there are no more messages. A publisher that was just given one may still announce it after that.
func (s *Supply) Ended() <-chan struct{} { return s.ended }
