package experiment

import (
	"sync/atomic"
	"time"

	"spillway/internal/event"
)

// leastSilence is how long nothing must be heard for it to be a silence: several times what passes between two answers at a
// low rate, less than any fault lasts.
const leastSilence = 250 * time.Millisecond

// silence adds up the time in which nothing was heard. The zero value has heard nothing yet, and counts from the first time it
// does. It is safe for concurrent use; answers that overtake each other make it short by as much.
type silence struct {
	last atomic.Int64 // when something was heard last, in nanoseconds; 0 never
	sum  atomic.Int64
}

// heard notes that something was heard.
func (s *silence) heard(at time.Duration) {
	last := s.last.Swap(int64(at))
	if gap := int64(at) - last; last != 0 && gap >= int64(leastSilence) {
		s.sum.Add(gap)
	}
}

// total returns the sum so far, with the silence of now.
func (s *silence) total(now time.Duration) time.Duration {
	sum, last := s.sum.Load(), s.last.Load()
	if gap := int64(now) - last; last != 0 && gap >= int64(leastSilence) {
		sum += gap
	}
	return time.Duration(sum)
}

// confirmsHeard lets signals hear the load side: of all its events only that an answer has come.
type confirmsHeard struct {
	event.NopLoad
	*silence
}

// Settled implements event.LoadObserver.
func (c confirmsHeard) Settled(e event.Settled) { c.heard(e.At) }
