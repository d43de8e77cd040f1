// Package timebase holds the one clock of a run.
//
// Every instant that a run records is an offset from the run's start, read from the monotonic clock, so a stepped wall
// clock cannot bend a latency. Wall time is derived from the anchor and appears only where it leaves the process: in
// message properties, headers, and result files. The package is a leaf.
package timebase

import "time"

// Base is the anchor of a run's time. The zero value is not usable; call New. A Base is immutable and safe for
// concurrent use.
type Base struct {
	start time.Time // carries a monotonic reading; never passed through UTC(), which strips it
}

// New anchors a time base at the present moment.
func New() *Base { return &Base{start: time.Now()} }

// At anchors a time base at the given moment, which must carry a monotonic reading for Now to be immune to clock steps.
func At(start time.Time) *Base { return &Base{start: start} }

// Start returns the anchor.
func (b *Base) Start() time.Time { return b.start }

// Now returns the time since the anchor, monotonic.
func (b *Base) Now() time.Duration { return time.Since(b.start) }

// Offset converts an instant into an offset from the anchor. It is monotonic when t carries a monotonic reading.
func (b *Base) Offset(t time.Time) time.Duration { return t.Sub(b.start) }

// Micros returns the wall time of an offset in microseconds since the Unix epoch, for headers. It rounds down.
func (b *Base) Micros(offset time.Duration) int64 {
	return b.start.UnixMicro() + offset.Microseconds()
}

// FromMicros is the inverse of Micros, exact to one microsecond: a header written by this process comes back as an
// offset on the same monotonic base.
func (b *Base) FromMicros(micros int64) time.Duration {
	return time.Duration(micros-b.start.UnixMicro()) * time.Microsecond
}

// Wall returns the wall time of an offset.
func (b *Base) Wall(offset time.Duration) time.Time { return b.start.Add(offset) }

// Drift returns how far the wall clock has stepped or slewed away from the monotonic clock since the anchor. Positive
// means that the wall clock runs ahead. A run whose drift jumps is invalid.
func (b *Base) Drift() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(b.start.Round(0)) - now.Sub(b.start)
}
