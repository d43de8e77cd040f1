package storm

import (
	"slices"
	"sync"
	"time"

	"spillway/internal/event"
)

// BinWidth returns the width of a bin for the shortest delay of a topology: min(1 s, delay / 5), at least a millisecond.
func BinWidth(shortest time.Duration) time.Duration {
	if shortest <= 0 {
		return time.Second
	}
	return max(time.Millisecond, min(time.Second, shortest/5))
}

// maxBins bounds a series: five and a half hours of 20 ms bins. Later events fall into the last bin.
const maxBins = 1_000_000

// Recorder collects a Series from the events of a run. It implements event.LoadObserver and event.WorkObserver and is
// safe for concurrent use.
type Recorder struct {
	event.NopLoad
	event.NopWork

	mu sync.Mutex // guards s
	s  Series
}

// NewRecorder returns a recorder with bins of the given width.
func NewRecorder(width time.Duration) *Recorder { return &Recorder{s: Series{Width: width}} }

// Arrived implements event.LoadObserver.
func (r *Recorder) Arrived(e event.Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.s.Arrivals, e.Scheduled, r.s.Width)
}

// Retried implements event.WorkObserver: the copy will be let go when its delay is over.
func (r *Recorder) Retried(e event.Retried) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.s.Returns, e.At+e.Delay, r.s.Width)
}

// Handled implements event.WorkObserver.
func (r *Recorder) Handled(e event.Handled) {
	if e.Result != event.Applied && e.Result != event.Refused {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.s.Goodput, e.Finished, time.Second)
}

// Sample adds the state of the path at an instant; instants must not fall.
func (r *Recorder) Sample(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.Samples = append(r.s.Samples, s)
}

// Series returns a copy of what was collected so far.
func (r *Recorder) Series() Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.s
	s.Arrivals, s.Returns, s.Goodput = slices.Clone(s.Arrivals), slices.Clone(s.Returns), slices.Clone(s.Goodput)
	s.Samples = slices.Clone(s.Samples)
	return s
}

func count(bins *[]int, at, width time.Duration) {
	i := int(min(max(0, at/width), maxBins-1))
	for len(*bins) <= i {
		*bins = append(*bins, 0)
	}
	(*bins)[i]++
}
