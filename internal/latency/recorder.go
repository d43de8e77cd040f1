// Package latency keeps the durations of a run as full HDR histograms: no sampling, no averages of averages.
//
// A Recorder takes durations in the hot path, a Set holds the run's recorders and hears of its events, Logs write them
// interval by interval as HdrHistogram logs. What a duration means, and when its clock starts, is said by the fields of
// Set. The package judges nothing: whether a run with out-of-range samples is valid is for others to say, from the
// counts kept here.
package latency

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of a Recorder.
const (
	// Max is the longest duration that is recorded; a longer one is counted in Overflows.
	Max = time.Hour
	// lowest is the unit of the histograms: a nanosecond, so that from 1 µs on all three digits hold. With a unit of
	// 1 µs they would hold from 1 ms on only.
	lowest = int64(time.Nanosecond)
	// digits is the number of significant decimal digits kept: a value is at most 0.1 % above the one recorded.
	digits = 3
)

// Recorder is a histogram of durations with three significant digits, 1 µs to 1 h; shorter ones are kept to the
// nanosecond. It is safe for concurrent use; call NewRecorder.
//
// One mutex guards the histogram that samples go to. It is held for one addition into an array: a sample costs some
// 10 ns (see the benchmark), so even 100,000 of them a second keep the lock taken for a thousandth of the time. A
// recorder per goroutine would cost 264 KiB of counts each instead, several times over. Everything slow works on a
// histogram that was swapped out.
type Recorder struct {
	name string
	*samples
}

// samples is what a recorder holds, under one name or two.
type samples struct {
	mu        *sync.Mutex // guards the next three; taken after slow. Recorders of one event share it
	active    *hdrhistogram.Histogram
	negatives int64
	overflows int64

	slow  sync.Mutex              // guards the next three
	total *hdrhistogram.Histogram // every interval before the active one
	spare *hdrhistogram.Histogram // empty; the next active one
	empty string                  // an empty histogram as logs have it; "" until there was one
}

// NewRecorder returns an empty recorder. The name is that of its key in results and of its file.
func NewRecorder(name string) *Recorder {
	return newRecorder(name, new(sync.Mutex))
}

func newRecorder(name string, mu *sync.Mutex) *Recorder {
	return &Recorder{name, &samples{mu: mu, active: newHistogram(), total: newHistogram(), spare: newHistogram()}}
}

// together returns recorders that are recorded in one event, under one lock.
func together(names ...string) (*sync.Mutex, []*Recorder) {
	mu, all := new(sync.Mutex), make([]*Recorder, len(names))
	for i, name := range names {
		all[i] = newRecorder(name, mu)
	}
	return mu, all
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(lowest, int64(Max), digits) }

// As returns the same recorder under another name: a duration that has two is recorded once.
func (r *Recorder) As(name string) *Recorder { return &Recorder{name, r.samples} }

// Name returns the recorder's name.
func (r *Recorder) Name() string { return r.name }

// Record adds one duration. A negative one, and one above Max, are counted apart and not recorded: neither is turned
// into a value that was never measured. It does not allocate.
func (r *Recorder) Record(d time.Duration) {
	r.mu.Lock()
	r.record(d)
	r.mu.Unlock()
}

// record is Record for who holds the lock.
func (r *Recorder) record(d time.Duration) {
	switch {
	case d < 0:
		r.negatives++
	case d > Max || r.active.RecordValue(int64(d)) != nil:
		r.overflows++
	}
}

// Negatives returns how many durations were below zero: a clock or an order of events that is not what it was taken for.
func (r *Recorder) Negatives() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.negatives
}

// Overflows returns how many durations were above Max.
func (r *Recorder) Overflows() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overflows
}

// Interval ends the interval from start to end, wall times, and writes it as one line to each log, an empty one too. Without
// a log it only closes the interval. Samples recorded meanwhile belong to the next.
func (r *Recorder) Interval(start, end time.Time, logs ...*Log) error {
	r.slow.Lock()
	defer r.slow.Unlock()
	ended := r.swap()
	if ended.TotalCount() > 0 {
		r.total.Merge(ended) // of the same bounds, so nothing is dropped
		defer ended.Reset()
	}
	if len(logs) == 0 {
		return nil
	}
	line, err := r.line(ended, start, end)
	for _, log := range logs {
		err = errors.Join(err, log.write(line))
	}
	return err
}

// line returns an interval as a line of a log. To encode an empty histogram costs as much as a full one, and there are many:
// it is done once.
func (r *Recorder) line(h *hdrhistogram.Histogram, start, end time.Time) (string, error) {
	encoded := r.empty
	if encoded == "" || h.TotalCount() > 0 {
		bytes, err := h.EncodeV2()
		if err != nil {
			return "", fmt.Errorf("encode an interval of %s: %w", r.name, err)
		}
		encoded = string(bytes)
	}
	if h.TotalCount() == 0 {
		r.empty = encoded
	}
	return fmt.Sprintf("%.3f,%.3f,%.3f,%s\n", float64(start.UnixMilli())/1e3, float64(end.UnixMilli()-start.UnixMilli())/1e3,
		float64(h.Max())/1e6, encoded), nil
}

// swap makes the spare histogram the active one and returns the former; slow is held.
func (r *Recorder) swap() *hdrhistogram.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.spare = r.spare, r.active
	return r.spare
}

// Merge adds what other has recorded so far, out-of-range counts included, as when several generators share a run.
// other keeps its own. The merged samples count in Summary and Quantile and in no interval.
func (r *Recorder) Merge(other *Recorder) {
	recorded, negatives, overflows := other.snapshot()
	r.slow.Lock()
	defer r.slow.Unlock()
	r.total.Merge(recorded)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.negatives += negatives
	r.overflows += overflows
}

// snapshot returns a copy of all that was recorded.
func (r *Recorder) snapshot() (all *hdrhistogram.Histogram, negatives, overflows int64) {
	r.slow.Lock()
	defer r.slow.Unlock()
	all = newHistogram()
	all.Merge(r.total)
	r.mu.Lock()
	defer r.mu.Unlock()
	all.Merge(r.active)
	return all, r.negatives, r.overflows
}
