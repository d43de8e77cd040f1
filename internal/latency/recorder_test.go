package latency_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"spillway/internal/latency"
)

// filled returns a recorder with the given durations.
func filled(ds ...time.Duration) *latency.Recorder {
	r := latency.NewRecorder("confirm")
	for _, d := range ds {
		r.Record(d)
	}
	return r
}

func summary(t *testing.T, r *latency.Recorder) latency.Summary {
	t.Helper()
	s, ok := r.Summary()
	if !ok {
		t.Fatalf("%s has no samples", r.Name())
	}
	return s
}

// near holds a value to one part in a thousand, the precision of three digits.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want*0.001 {
		t.Errorf("%s %v, want %v within 0.1 %%", what, got, want)
	}
}

func TestARecorderWithoutSamplesHasNoSummary(t *testing.T) {
	t.Parallel()
	r := filled(-1, latency.Max+1)
	if s, ok := r.Summary(); ok || s != (latency.Summary{}) {
		t.Errorf("summary %+v, %v; want none", s, ok)
	}
	if q, ok := r.Quantile(0.5); ok || q != 0 {
		t.Errorf("quantile %s, %v; want none", q, ok)
	}
}

func TestOutOfRangeIsCountedAndNotRecorded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                        string
		d                           time.Duration
		count, negatives, overflows int64
	}{
		{"a negative one", -time.Nanosecond, 0, 1, 0},
		{"the smallest there is", math.MinInt64, 0, 1, 0},
		{"zero is a duration", 0, 1, 0, 0},
		{"the longest recorded", latency.Max, 1, 0, 0},
		{"a longer one", latency.Max + 1, 0, 0, 1},
		{"the longest there is", math.MaxInt64, 0, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := filled(row.d)
			s, _ := r.Summary()
			if s.Count != row.count || r.Negatives() != row.negatives || r.Overflows() != row.overflows {
				t.Errorf("count %d, negatives %d, overflows %d; want %d, %d, %d",
					s.Count, r.Negatives(), r.Overflows(), row.count, row.negatives, row.overflows)
			}
		})
	}
}

func TestThreeDigitsHoldFromAMicrosecondToAnHour(t *testing.T) {
	t.Parallel()
	for d := time.Microsecond; d <= latency.Max; d = d * 13 / 10 {
		s := summary(t, filled(d))
		for _, v := range []float64{s.Min, s.Mean, s.P50, s.P999, s.Max} {
			near(t, d.String(), v, d.Seconds())
		}
	}
}

func TestASummaryIsThatOfTheSamples(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 1))
	r, all := latency.NewRecorder("sojourn"), make([]float64, 100_000)
	sum := 0.0
	for i := range all {
		d := time.Duration(draw.ExpFloat64() * 5e6)
		all[i] = d.Seconds()
		sum += all[i]
		r.Record(d)
	}
	slices.Sort(all)
	s := summary(t, r)
	if s.Count != 100_000 {
		t.Errorf("count %d, want 100000", s.Count)
	}
	near(t, "mean", s.Mean, sum/100_000)
	for what, pair := range map[string][2]float64{
		"p50": {s.P50, all[49_999]}, "p90": {s.P90, all[89_999]}, "p95": {s.P95, all[94_999]},
		"p99": {s.P99, all[98_999]}, "p999": {s.P999, all[99_899]}, "max": {s.Max, all[99_999]},
	} {
		near(t, what, pair[0], pair[1])
	}
	if got, _ := r.Quantile(0.99); got.Seconds() != s.P99 {
		t.Errorf("quantile 0.99 is %s, the summary says %vs", got, s.P99)
	}
}

func TestASummarySeesEndedAndRunningIntervals(t *testing.T) {
	t.Parallel()
	r := filled(time.Millisecond)
	for range 3 {
		if err := r.Interval(time.Time{}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		r.Record(time.Second)
	}
	s := summary(t, r)
	if s.Count != 4 {
		t.Errorf("count %d, want 4", s.Count)
	}
	near(t, "min", s.Min, 0.001)
	near(t, "max", s.Max, 1)
}

func TestMergedRecordersAreTheirSum(t *testing.T) {
	t.Parallel()
	a, b := filled(time.Millisecond, -1), filled(time.Second, -1, 2*latency.Max)
	a.Merge(b)
	if s := summary(t, a); s.Count != 2 || a.Negatives() != 2 || a.Overflows() != 1 {
		t.Errorf("count %d, negatives %d, overflows %d; want 2, 2, 1", s.Count, a.Negatives(), a.Overflows())
	}
	if s := summary(t, b); s.Count != 1 || b.Negatives() != 1 {
		t.Errorf("the merged one has count %d, negatives %d; want its own 1, 1", s.Count, b.Negatives())
	}
	a.Merge(a)
	if s := summary(t, a); s.Count != 4 {
		t.Errorf("merged with itself it has %d, want 4", s.Count)
	}
}

func TestNoSampleIsLostBetweenIntervals(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 20_000
	r := latency.NewRecorder("confirm")
	var recording, rotating sync.WaitGroup
	stop := make(chan struct{})
	rotating.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = r.Interval(time.Time{}, time.Time{})
				r.Summary()
			}
		}
	})
	for range writers {
		recording.Go(func() {
			for i := range each {
				r.Record(time.Duration(i))
			}
		})
	}
	recording.Wait()
	close(stop)
	rotating.Wait()
	if s := summary(t, r); s.Count != writers*each {
		t.Errorf("count %d, want %d", s.Count, writers*each)
	}
}

// Not parallel: allocations are counted over the whole process.
func TestRecordDoesNotAllocate(t *testing.T) { //nolint:paralleltest // see above
	r := latency.NewRecorder("confirm")
	if n := testing.AllocsPerRun(1000, func() { r.Record(3 * time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a sample, want 0", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	b.Run("one goroutine", func(b *testing.B) {
		r := latency.NewRecorder("confirm")
		b.ReportAllocs()
		for i := time.Duration(0); b.Loop(); i++ {
			r.Record(i % time.Second)
		}
	})
	b.Run("contended", func(b *testing.B) {
		r := latency.NewRecorder("confirm")
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := time.Duration(0); pb.Next(); i++ {
				r.Record(i % time.Second)
			}
		})
	})
}
