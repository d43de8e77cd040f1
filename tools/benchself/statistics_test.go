package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTheMedianIsTheMiddleOrTheMeanOfTheTwo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{5, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		before := row.values[0]
		if got := median(row.values); got != row.want || row.values[0] != before {
			t.Errorf("median of %v is %v, want %v and the slice as it was", row.values, got, row.want)
		}
	}
}

func TestTheBootstrapOfOneValueIsThatValue(t *testing.T) {
	t.Parallel()
	if got := bootstrap([]float64{1.5}); got != (interval{1.5, 1.5, 1.5}) {
		t.Errorf("%+v, want three times 1.5", got)
	}
}

// TestTheIntervalCoversTheTruthAsOftenAsItSays draws samples of 15 from a known distribution. The percentile interval of a
// median is known to cover a little less than it says for small samples.
func TestTheIntervalCoversTheTruthAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(7, 7))
	const trials = 100
	covered := 0
	for range trials {
		values := make([]float64, 15)
		for i := range values {
			values[i] = 1.2 + source.NormFloat64()*0.1
		}
		got := bootstrap(values)
		if got.Low > got.Mid || got.Mid > got.High || math.IsNaN(got.Mid) {
			t.Fatalf("%+v is no interval", got)
		}
		if got.Low <= 1.2 && 1.2 <= got.High {
			covered++
		}
	}
	if covered < 85 {
		t.Errorf("the truth was inside %d of %d intervals, want 85 or more", covered, trials)
	}
}
