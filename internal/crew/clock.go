package crew

import (
	"time"

	"spillway/internal/timebase"
)

// Anchor is a time base as another process of the same machine can join it.
type Anchor struct {
	Wall  time.Time
	Clock time.Duration // the machine's monotonic clock at the base's start; 0 where it cannot be read
}

// anchorOf returns what another process needs to join. Reading two clocks takes a moment, so its offsets are equal to some
// microseconds.
func anchorOf(b *timebase.Base) Anchor {
	a := Anchor{Wall: b.Start().Round(0)}
	if clock, ok := monotonic(); ok {
		a.Clock = clock - b.Now()
	}
	return a
}

// join returns the base of an anchor. Without a common monotonic clock it goes by the wall clock as it is now.
func (a Anchor) join() *timebase.Base {
	now := time.Now()
	if clock, ok := monotonic(); ok && a.Clock != 0 {
		return timebase.At(now.Add(a.Clock - clock))
	}
	return timebase.At(now.Add(-now.Sub(a.Wall)))
}
