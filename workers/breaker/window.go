package breaker

import "time"

// buckets of a window. Ten let the oldest tenth of the window go at a time: fine enough that an opening is not late by
// more than that, and few enough to add up on every failure.
const buckets = 10

// window counts results over the last stretch of time.
type window struct {
	width time.Duration // of one bucket, above 0
	ring  [buckets]bucket
}

// bucket counts the results of one stretch: at is its start divided by the width, and tells an old lap from this one.
type bucket struct {
	at            int64
	good, failing int
}

func newWindow(length time.Duration) window { return window{width: max(length/buckets, 1)} }

func (w *window) add(now time.Duration, success bool) {
	at := int64(now / w.width)
	b := &w.ring[uint64(at)%buckets]
	if b.at != at {
		*b = bucket{at: at}
	}
	if success {
		b.good++
	} else {
		b.failing++
	}
	w.forget(at)
}

// forget drops the buckets that lie outside the window that ends with bucket last.
func (w *window) forget(last int64) {
	for i := range w.ring {
		if w.ring[i].at <= last-buckets {
			w.ring[i] = bucket{at: last}
		}
	}
}

// failing reports whether enough results are in and the share of failures is reached. add has just been called.
func (w *window) failing(s Settings) bool {
	results, failures := 0, 0
	for _, b := range w.ring {
		results += b.good + b.failing
		failures += b.failing
	}
	return results >= s.MinSamples && float64(failures) >= s.FailureRatio*float64(results)
}
