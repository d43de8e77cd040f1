package latency_test

import (
	"slices"
	"testing"
	"time"

	"spillway/internal/latency"
)

func TestBucketsAreCumulativeAndSumUp(t *testing.T) {
	t.Parallel()
	r := latency.NewRecorder("x")
	bounds := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}
	if atMost, count, sum := r.Buckets(bounds); !slices.Equal(atMost, []uint64{0, 0, 0}) || count != 0 || sum != 0 {
		t.Errorf("an empty recorder has %v, %d, %v", atMost, count, sum)
	}
	for _, d := range []time.Duration{500 * time.Microsecond, 2 * time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond} {
		r.Record(d)
	}
	if err := r.Interval(time.Now(), time.Now()); err != nil { // those of ended intervals count too
		t.Fatal(err)
	}
	r.Record(2 * time.Second)
	atMost, count, sum := r.Buckets(bounds)
	if !slices.Equal(atMost, []uint64{1, 3, 4}) || count != 5 {
		t.Errorf("%v of %d, want 1, 3 and 4 of 5", atMost, count)
	}
	if want := 2025500 * time.Microsecond; (sum - want).Abs() > want/1000 {
		t.Errorf("sum %v, want %v", sum, want)
	}
}
