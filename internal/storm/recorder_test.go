package storm_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"spillway/internal/event"
	"spillway/internal/storm"
)

var (
	_ event.LoadObserver = (*storm.Recorder)(nil)
	_ event.WorkObserver = (*storm.Recorder)(nil)
)

func TestEventsFallIntoTheirBins(t *testing.T) {
	t.Parallel()
	r := storm.NewRecorder(100 * ms)
	r.Arrived(event.Arrival{Scheduled: 0})
	r.Arrived(event.Arrival{Scheduled: 99 * ms})
	r.Arrived(event.Arrival{Scheduled: 300 * ms})
	r.Arrived(event.Arrival{Scheduled: -150 * ms}) // before the anchor: the first bin
	r.Retried(event.Retried{At: 40 * ms, Delay: 50 * ms})
	r.Retried(event.Retried{At: 40 * ms, Delay: 60 * ms})
	r.Handled(event.Handled{Started: 900 * ms, Finished: 1900 * ms, Result: event.Applied})
	r.Handled(event.Handled{Finished: 1100 * ms, Result: event.Refused})
	for _, other := range []event.Result{event.Duplicate, event.Transient, event.Permanent, event.UnknownError} {
		r.Handled(event.Handled{Finished: 100 * ms, Result: other})
	}
	r.Sample(storm.Sample{At: 100 * ms, Age: 3, Debt: 4})
	got := r.Series()
	if got.Width != 100*ms || !slices.Equal(got.Arrivals, []int{3, 0, 0, 1}) {
		t.Errorf("arrivals %v in bins of %v, want 3 0 0 1", got.Arrivals, got.Width)
	}
	if !slices.Equal(got.Returns, []int{1, 1}) {
		t.Errorf("returns %v, want each when its delay is over: 1 1", got.Returns)
	}
	if !slices.Equal(got.Goodput, []int{0, 2}) {
		t.Errorf("goodput %v, want first-time effects by whole seconds: 0 2", got.Goodput)
	}
	if !slices.Equal(got.Samples, []storm.Sample{{At: 100 * ms, Age: 3, Debt: 4}}) {
		t.Errorf("samples %v", got.Samples)
	}
}

func TestASeriesIsACopy(t *testing.T) {
	t.Parallel()
	r := storm.NewRecorder(100 * ms)
	r.Arrived(event.Arrival{})
	r.Sample(storm.Sample{})
	got := r.Series()
	r.Arrived(event.Arrival{})
	r.Sample(storm.Sample{})
	if got.Arrivals[0] != 1 || len(got.Samples) != 1 {
		t.Errorf("a series changed after it was taken: %+v", got)
	}
	r.Series().Samples[0].Debt = 7
	if again := r.Series(); again.Samples[0].Debt != 0 {
		t.Errorf("a series changed the recorder's: %+v", again)
	}
}

func TestTheSeriesIsBounded(t *testing.T) {
	t.Parallel()
	r := storm.NewRecorder(ms)
	r.Arrived(event.Arrival{Scheduled: 24 * time.Hour})
	r.Arrived(event.Arrival{Scheduled: 48 * time.Hour})
	got := r.Series().Arrivals
	if len(got) != 1_000_000 || got[len(got)-1] != 2 {
		t.Errorf("%d bins, the last with %d; want a million, and 2", len(got), got[len(got)-1])
	}
}

func TestARecorderHearsManyGoroutines(t *testing.T) {
	t.Parallel()
	r := storm.NewRecorder(100 * ms)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 500 {
				at := time.Duration(i) * ms
				r.Arrived(event.Arrival{Scheduled: at})
				r.Retried(event.Retried{At: at})
				r.Handled(event.Handled{Finished: at, Result: event.Applied})
				_ = r.Series()
			}
		})
	}
	all.Wait()
	s := r.Series()
	if !slices.Equal(s.Arrivals, []int{800, 800, 800, 800, 800}) || !slices.Equal(s.Returns, s.Arrivals) || s.Goodput[0] != 4000 {
		t.Errorf("arrivals %v, returns %v, goodput %v", s.Arrivals, s.Returns, s.Goodput)
	}
}
