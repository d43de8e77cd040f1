package arrival_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"spillway/loadgen/arrival"
)

func TestRatesAndIntegralsAsOnPaper(t *testing.T) {
	t.Parallel()
	const s = time.Second
	ramp := must(arrival.NewRamp(100, 300, 10*s))
	steps := must(arrival.NewSteps([]float64{10, 0, 30}, 9*s))
	spike := must(arrival.NewSpike(10, 100, 4*s, 2*s, 10*s))
	sine := must(arrival.NewSine(100, 50, 4*s, 12*s))
	both := must(arrival.NewSequence(ramp, must(arrival.NewFlat(0, s)), sine))
	for _, row := range []struct {
		name           string
		shape          arrival.Shape
		at             time.Duration
		rate, integral float64
	}{
		{"a ramp begins at its first rate", ramp, 0, 100, 0},
		{"a ramp is half way up after half the span", ramp, 5 * s, 200, 750},
		{"a ramp ends at its last rate", ramp, 10 * s, 300, 2000},
		{"before the start it is as at the start", ramp, -s, 100, 0},
		{"after the end it is as at the end", ramp, 11 * s, 300, 2000},
		{"a step holds until the next", steps, 3*s - 1, 10, 30},
		{"a border belongs to what begins there", steps, 3 * s, 0, 30},
		{"the last step", steps, 8 * s, 30, 90},
		{"a flat end stays", steps, 20 * s, 30, 120},
		{"before a spike", spike, 4*s - 1, 10, 40},
		{"in a spike", spike, 5 * s, 100, 140},
		{"after a spike", spike, 6 * s, 10, 240},
		{"a sine begins at its mean", sine, 0, 100, 0},
		{"a quarter of a period later it is highest", sine, s, 150, 100 + 100/math.Pi},
		{"three quarters of a later period and it is lowest", sine, 7 * s, 50, 700 + 100/math.Pi},
		{"a sine before its start", sine, -s, 100, 0},
		{"whole periods are their mean", sine, 8 * s, 100, 800},
		{"a pause in a sequence", both, 10*s + 1, 0, 2000},
		{"a sequence goes on", both, 12 * s, 150, 2100 + 100/math.Pi},
		{"a sequence before its start", both, -s, 100, 0},
		{"a sequence ends as its last shape", both, 60 * s, 100, 3200},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.shape.Rate(row.at); math.Abs(got-row.rate) > 1e-9 {
				t.Errorf("rate %v, want %v", got, row.rate)
			}
			if got := row.shape.Integral(row.at); math.Abs(got-row.integral) > 1.1e-7 {
				t.Errorf("integral %v, want %v", got, row.integral)
			}
		})
	}
}

func TestInstantsAsOnPaper(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	pause := must(arrival.NewSteps([]float64{2, 0, 2}, 3*s))
	for _, row := range []struct {
		name  string
		shape arrival.Shape
		want  []time.Duration
	}{
		{"a ramp from nothing has the square roots", must(arrival.NewRamp(0, 4, 2*s)),
			[]time.Duration{0, s, 1_414_213_562, 1_732_050_807}},
		{"what is due when a pause begins is due when it ends", pause,
			[]time.Duration{0, 500 * ms, 2 * s, 2500 * ms}},
		{"half an arrival is carried over a border", must(arrival.NewSequence(
			must(arrival.NewFlat(2.5, s)), must(arrival.NewFlat(5, s)))),
			[]time.Duration{0, 400 * ms, 800 * ms, 1100 * ms, 1300 * ms, 1500 * ms, 1700 * ms}},
		{"half an arrival is carried over a pause and into a ramp", must(arrival.NewSequence(
			must(arrival.NewFlat(1.5, s)), must(arrival.NewFlat(0, s)), must(arrival.NewRamp(2, 2, s)))),
			[]time.Duration{0, 666_666_666, 2250 * ms}},
		{"a level sine has even distances", must(arrival.NewSine(4, 0, s, s)),
			[]time.Duration{0, 250 * ms, 500 * ms, 750 * ms}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := instants(process(t, row.shape, arrival.Constant, 0))
			if !slices.Equal(got, row.want) {
				t.Errorf("instants %v, want %v", got, row.want)
			}
		})
	}
}

func TestAWarmUpHoldsExactlyItsShareOfARamp(t *testing.T) {
	t.Parallel()
	for _, top := range []float64{10, 30, 700, 12_345} {
		due := instants(process(t, must(arrival.NewRamp(0, top, 10*time.Second)), arrival.Constant, 0))
		warm, _ := slices.BinarySearch(due, 2*time.Second)
		if want := int(math.Ceil(top * 2 * 2 / 20)); warm != want {
			t.Errorf("up to %v/s, %d arrivals are due in the first two seconds, want %d", top, warm, want)
		}
	}
}

func TestImpossibleShapesAreRefused(t *testing.T) {
	t.Parallel()
	const s = time.Second
	flat := must(arrival.NewFlat(1, s))
	long := must(arrival.NewFlat(1, arrival.MaxSpan))
	many := must(arrival.NewFlat(arrival.MaxTotal, s))
	half := must(arrival.NewSteps(make([]float64, 600), s))
	for _, row := range []struct {
		name  string
		build func() (arrival.Shape, error)
		want  error
	}{
		{"a negative rate", func() (arrival.Shape, error) { return arrival.NewFlat(-1, s) }, arrival.ErrNegativeRate},
		{"a rate that is no number", func() (arrival.Shape, error) { return arrival.NewFlat(math.NaN(), s) }, arrival.ErrNegativeRate},
		{"no span", func() (arrival.Shape, error) { return arrival.NewFlat(1, 0) }, arrival.ErrBadSpan},
		{"a span of centuries", func() (arrival.Shape, error) { return arrival.NewFlat(1, math.MaxInt64) }, arrival.ErrLongSpan},
		{"too many arrivals", func() (arrival.Shape, error) { return arrival.NewFlat(1e300, s) }, arrival.ErrTooMany},
		{"a ramp to infinity", func() (arrival.Shape, error) { return arrival.NewRamp(1, math.Inf(1), s) }, arrival.ErrNegativeRate},
		{"a ramp of no span", func() (arrival.Shape, error) { return arrival.NewRamp(1, 2, 0) }, arrival.ErrBadSpan},
		{"a sine below zero", func() (arrival.Shape, error) { return arrival.NewSine(1, 2, s, s) }, arrival.ErrBadShape},
		{"a sine of no period", func() (arrival.Shape, error) { return arrival.NewSine(2, 1, 0, s) }, arrival.ErrBadShape},
		{"a sine of no span", func() (arrival.Shape, error) { return arrival.NewSine(2, 1, s, 0) }, arrival.ErrBadSpan},
		{"a sine of negative amplitude", func() (arrival.Shape, error) { return arrival.NewSine(2, -1, s, s) }, arrival.ErrNegativeRate},
		{"steps of no span", func() (arrival.Shape, error) { return arrival.NewSteps([]float64{1}, 0) }, arrival.ErrBadSpan},
		{"no steps", func() (arrival.Shape, error) { return arrival.NewSteps(nil, s) }, arrival.ErrBadShape},
		{"steps below a nanosecond", func() (arrival.Shape, error) { return arrival.NewSteps([]float64{1, 2, 3}, 2) }, arrival.ErrBadSpan},
		{"a negative step", func() (arrival.Shape, error) { return arrival.NewSteps([]float64{1, -1}, s) }, arrival.ErrNegativeRate},
		{"too many steps", func() (arrival.Shape, error) { return arrival.NewSteps(make([]float64, 1001), s) }, arrival.ErrBadShape},
		{"a spike before the start", func() (arrival.Shape, error) { return arrival.NewSpike(1, 2, -1, s, 3*s) }, arrival.ErrBadShape},
		{"a spike past the end", func() (arrival.Shape, error) { return arrival.NewSpike(1, 2, 2*s, s+1, 3*s) }, arrival.ErrBadShape},
		{"a spike after the end", func() (arrival.Shape, error) { return arrival.NewSpike(1, 2, 4*s, 1, 3*s) }, arrival.ErrBadShape},
		{"a spike of no width", func() (arrival.Shape, error) { return arrival.NewSpike(1, 2, s, 0, 3*s) }, arrival.ErrBadShape},
		{"a spike in no span", func() (arrival.Shape, error) { return arrival.NewSpike(1, 2, 0, s, 0) }, arrival.ErrBadSpan},
		{"a sequence of nothing", func() (arrival.Shape, error) { return arrival.NewSequence() }, arrival.ErrBadShape},
		{"a sequence that is too long", func() (arrival.Shape, error) { return arrival.NewSequence(long, flat) }, arrival.ErrLongSpan},
		{"a sequence of too many arrivals", func() (arrival.Shape, error) { return arrival.NewSequence(many, flat) }, arrival.ErrTooMany},
		{"a sequence of too many parts", func() (arrival.Shape, error) { return arrival.NewSequence(half, half) }, arrival.ErrBadShape},
		{"a broken shape in a sequence", func() (arrival.Shape, error) { return arrival.NewSequence(flat, broken{}) }, arrival.ErrBadSpan},
		{"a replay of nothing", func() (arrival.Shape, error) { return arrival.NewReplay(nil) }, arrival.ErrNoTimes},
		{"a replay that goes back", func() (arrival.Shape, error) { return arrival.NewReplay([]time.Duration{2, 1}) }, arrival.ErrOrder},
		{"a replay before the start", func() (arrival.Shape, error) { return arrival.NewReplay([]time.Duration{-1, 1}) }, arrival.ErrOrder},
		{"a replay of centuries", func() (arrival.Shape, error) { return arrival.NewReplay([]time.Duration{math.MaxInt64}) }, arrival.ErrLongSpan},
		{"a replay without end", func() (arrival.Shape, error) {
			return arrival.NewReplay(make([]time.Duration, arrival.MaxReplay+1))
		}, arrival.ErrLongReplay},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if shape, err := row.build(); !errors.Is(err, row.want) || shape != nil {
				t.Errorf("shape %v, error %v, want %v", shape, err, row.want)
			}
		})
	}
}

func TestAPauseIsLeftAtItsEnd(t *testing.T) {
	t.Parallel()
	const s = time.Second
	pause, level := must(arrival.NewFlat(0, s)), must(arrival.NewRamp(0, 0, s))
	file := must(arrival.NewReplay([]time.Duration{s, 2 * s}))
	for _, row := range []struct {
		name  string
		shape arrival.Shape
		n     float64
		want  time.Duration
	}{
		{"alone", pause, 0, s},
		{"below zero counts as zero", pause, -1, s},
		{"as a ramp", level, -1, s},
		{"as a sine", must(arrival.NewSine(0, 0, s, s)), -1, s},
		{"in front", must(arrival.NewSequence(pause, level, must(arrival.NewFlat(1, s)))), 0, 2 * s},
		{"at the end", must(arrival.NewSequence(must(arrival.NewFlat(1, s)), pause)), 1, 2 * s},
		{"what comes before one is not moved", must(arrival.NewSequence(must(arrival.NewFlat(1, s)), pause)), 0.5, s / 2},
		{"a replay is left at its instants", file, 1.9, 2 * s},
		{"a replay is over at its span", file, 2, 2*s + 1},
		{"a replay does not begin before its first", file, -1, s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.shape.Invert(row.n); got != row.want {
				t.Errorf("Invert(%v) = %s, want %s", row.n, got, row.want)
			}
		})
	}
}
