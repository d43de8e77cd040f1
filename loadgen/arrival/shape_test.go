package arrival_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"spillway/loadgen/arrival"
)

// must returns the shape of a constructor that is not meant to fail.
func must(shape arrival.Shape, err error) arrival.Shape {
	if err != nil {
		panic(err)
	}
	return shape
}

func process(t *testing.T, shape arrival.Shape, kind string, seed uint64) arrival.Process {
	t.Helper()
	p, err := arrival.FromShape(shape, kind, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outside is a shape of another package: r(t) = 300 t^2 for two seconds.
type outside struct{ total float64 }

func (outside) Rate(t time.Duration) float64     { return 300 * t.Seconds() * t.Seconds() }
func (outside) Integral(t time.Duration) float64 { return 100 * math.Pow(t.Seconds(), 3) }
func (outside) Span() time.Duration              { return 2 * time.Second }
func (outside) Invert(n float64) time.Duration {
	return time.Duration(math.Cbrt(n/100)*1e9 + 1e-6)
}

// shapes returns one of each, with the number of arrivals it has on paper.
func shapes() []row {
	const s = time.Second
	return []row{
		{"flat", must(arrival.NewFlat(2000, 10*s)), 20_000},
		{"flat, a rate that floats cannot hold", must(arrival.NewFlat(0.29, 100*s)), 29},
		{"ramp up from nothing", must(arrival.NewRamp(0, 2000, 20*s)), 20_000},
		{"ramp down to nothing", must(arrival.NewRamp(2000, 0, 20*s)), 20_000},
		{"ramp between odd rates", must(arrival.NewRamp(0.1, 0.3, 15*s)), 3},
		{"a ramp that is level", must(arrival.NewRamp(500, 500, 10*s)), 5000},
		{"steps with a pause", must(arrival.NewSteps([]float64{500, 0, 1500, 1000}, 20*s)), 15_000},
		{"steps on borders that are no whole nanoseconds", must(arrival.NewSteps([]float64{1000, 2000, 3000}, 10*s)), 20_000},
		{"spike", must(arrival.NewSpike(500, 5000, 4*s, 2*s, 12*s)), 15_000},
		{"a spike at the start", must(arrival.NewSpike(500, 5000, 0, 2*s, 12*s)), 15_000},
		{"a spike at the end, downwards", must(arrival.NewSpike(1500, 0, 10*s, 2*s, 12*s)), 15_000},
		{"sine over whole periods", must(arrival.NewSine(1000, 700, 4*s, 20*s)), 20_000},
		{"sine that touches zero", must(arrival.NewSine(1000, 1000, 5*s, 20*s)), 20_000},
		{"sine over half a period", must(arrival.NewSine(1000, 500, 8*s, 4*s)), 4000 + 1273}, // 500 x 8 / pi = 1273.2
		{"a sine of no amplitude", must(arrival.NewSine(1.1, 0, 3*s, 10*s)), 11},
		{"another package's shape", outside{800}, 800},
		{"sequence", must(arrival.NewSequence(
			must(arrival.NewRamp(0, 1000, 4*s)), must(arrival.NewFlat(1000, 6*s)), must(arrival.NewFlat(0, s)),
			must(arrival.NewSine(1000, 600, 2*s, 6*s)), must(arrival.NewSpike(100, 900, s, s, 3*s)), outside{800},
			must(arrival.NewRamp(1000, 0, 2*s)))), 2000 + 6000 + 6000 + 1100 + 800 + 1000},
	}
}

type row struct {
	name  string
	shape arrival.Shape
	want  int64
}

func TestAShapeYieldsItsIntegralInOrderWithinTheSpan(t *testing.T) {
	t.Parallel()
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := int64(row.shape.Integral(row.shape.Span()) + 1e-6); got != row.want {
				t.Errorf("integral %d, want %d", got, row.want)
			}
			for _, kind := range []string{arrival.Constant, arrival.Poisson} {
				p := process(t, row.shape, kind, 3)
				due := instants(p)
				if p.Total() != row.want || int64(len(due)) != row.want {
					t.Fatalf("%s: %d instants, total %d, want %d", kind, len(due), p.Total(), row.want)
				}
				if !slices.IsSorted(due) {
					t.Errorf("%s: instants go back", kind)
				}
				if due[0] < 0 || due[len(due)-1] >= row.shape.Span() {
					t.Errorf("%s: instants from %s to %s in a span of %s", kind, due[0], due[len(due)-1], row.shape.Span())
				}
			}
		})
	}
}

func TestConstantArrivalsAreDueWhereTheIntegralPassesTheirNumber(t *testing.T) {
	t.Parallel()
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for k, due := range instants(process(t, row.shape, arrival.Constant, 0)) {
				want := row.shape.Invert(float64(k))
				if d := due - want; d < -1 || d > 1 {
					t.Fatalf("arrival %d is due at %s, the inverse says %s", k, due, want)
				}
			}
		})
	}
}

// The integral of what Invert returns is n, but for what arrives within a nanosecond and roundings of n itself.
func TestTheInverseUndoesTheIntegral(t *testing.T) {
	t.Parallel()
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			total := row.shape.Integral(row.shape.Span())
			last := time.Duration(0)
			for i := range 5000 {
				n := total * float64(i) / 5000
				at := row.shape.Invert(n)
				if got := row.shape.Integral(at); math.Abs(got-n) > 2e-9*row.shape.Rate(at)+1e-9 {
					t.Fatalf("the integral at Invert(%v) = %s is %v", n, at, got)
				}
				if at < last {
					t.Fatalf("Invert(%v) = %s is before %s", n, at, last)
				}
				last = at
			}
			for _, n := range []float64{total, total + 1, math.Inf(1)} {
				if _, ours := row.shape.(outside); !ours && row.shape.Invert(n) != row.shape.Span() {
					t.Errorf("Invert(%v) = %s, want the span %s", n, row.shape.Invert(n), row.shape.Span())
				}
			}
		})
	}
}

func TestTheIntegralUndoesTheInverse(t *testing.T) {
	t.Parallel()
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for i := range 5000 {
				at := row.shape.Span() * time.Duration(i) / 5000
				rate := row.shape.Rate(at)
				if rate < 1e-3 { // as many arrivals before many instants
					continue
				}
				// Two nanoseconds, and what the roundings of some 20,000 arrivals make of the time at this rate.
				tolerance := 2 + 5e-11*1e9/rate
				if got := row.shape.Invert(row.shape.Integral(at)); math.Abs(float64(got-at)) > tolerance {
					t.Fatalf("Invert(Integral(%s)) = %s, at a rate of %v/s", at, got, rate)
				}
			}
		})
	}
}

func TestTheIntegralIsThatOfTheRate(t *testing.T) {
	t.Parallel()
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			const n = 40_000
			step, sum := row.shape.Span()/n, 0.0
			for i := range n {
				sum += row.shape.Rate(time.Duration(i)*step+step/2) * step.Seconds()
				if i%200 != 199 {
					continue
				}
				at := time.Duration(i+1) * step
				if got := row.shape.Integral(at); math.Abs(got-sum) > 1 { // a border may lie within a step, of half a millisecond at most
					t.Fatalf("the rates up to %s add up to %v, the integral is %v", at, sum, got)
				}
			}
		})
	}
}

// Chi-square over sixty equal bins: the arrivals of a bin against the integral over it.
func TestPoissonArrivalsFollowTheLocalRate(t *testing.T) {
	t.Parallel()
	for _, row := range shapes() {
		if row.want < 5000 {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			const bins = 60
			var seen [bins]float64
			span := row.shape.Span()
			for _, due := range instants(process(t, row.shape, arrival.Poisson, 11)) {
				seen[min(bins-1, int(float64(due)/float64(span)*bins))]++
			}
			scale := float64(row.want) / row.shape.Integral(span)
			chi, freedom := 0.0, -1.0
			for i, got := range seen {
				from, to := span*time.Duration(i)/bins, span*time.Duration(i+1)/bins
				want := (row.shape.Integral(to) - row.shape.Integral(from)) * scale
				if want < 1e-9 && got > 0 {
					t.Errorf("%v arrivals from %s to %s, where none are offered", got, from, to)
				}
				if want > 1 {
					chi += (got - want) * (got - want) / want
					freedom++
				}
			}
			if limit := chiSquareLimit(freedom); chi > limit {
				t.Errorf("chi-square %.1f over %v degrees of freedom, limit %.1f", chi, freedom, limit)
			}
			if chi < freedom/3 {
				t.Errorf("chi-square %.1f over %v degrees of freedom: too even for chance", chi, freedom)
			}
		})
	}
}

// chiSquareLimit returns what one true sample in a thousand exceeds (Wilson and Hilferty's cube root).
func chiSquareLimit(freedom float64) float64 {
	v := 2 / (9 * freedom)
	return freedom * math.Pow(1-v+3.0902*math.Sqrt(v), 3)
}

func TestFlatArrivalsAreThoseOfNew(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.3, 7, 333.3, 3000, 33_333} {
		span := 7*time.Second + 1
		shape := must(arrival.NewFlat(rate, span))
		if !slices.Equal(instants(process(t, shape, arrival.Constant, 0)), instants(arrival.NewConstant(rate, span))) {
			t.Errorf("constant arrivals at %v/s differ from NewConstant's", rate)
		}
		if !slices.Equal(instants(process(t, shape, arrival.Poisson, 5)), instants(arrival.NewPoisson(rate, span, 5))) {
			t.Errorf("Poisson arrivals at %v/s differ from NewPoisson's", rate)
		}
	}
}

func TestFlatPartsOfOneRateAreOneFlatShape(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.3, 7, 333.3, 3000} {
		var parts []arrival.Shape
		for _, span := range []time.Duration{time.Second / 3, 1, 999_999_937, 4 * time.Second, 1_666_666_729} {
			parts = append(parts, must(arrival.NewFlat(rate, span)))
		}
		whole := must(arrival.NewSequence(parts...))
		want := instants(arrival.NewConstant(rate, whole.Span()))
		if got := instants(process(t, whole, arrival.Constant, 0)); !slices.Equal(got, want) {
			t.Errorf("at %v/s a sequence of equal rates is not the rate itself", rate)
		}
	}
}

func TestTheSeedDecidesShapedInstants(t *testing.T) {
	t.Parallel()
	shape := must(arrival.NewRamp(0, 500, 4*time.Second))
	first := instants(process(t, shape, arrival.Poisson, 7))
	if again := instants(process(t, shape, arrival.Poisson, 7)); !slices.Equal(first, again) {
		t.Error("the same seed gave other instants")
	}
	if other := instants(process(t, shape, arrival.Poisson, 8)); slices.Equal(first, other) {
		t.Error("another seed gave the same instants")
	}
}

// An arrival of 1.9 expected ones may come at any time of the whole span.
func TestAFractionOfAnArrivalStillCountsForTheTimeOfTheOthers(t *testing.T) {
	t.Parallel()
	shape := must(arrival.NewSteps([]float64{1, 1}, 1900*time.Millisecond))
	late := 0
	for seed := range uint64(1000) {
		due := instants(process(t, shape, arrival.Poisson, seed))
		if len(due) != 1 {
			t.Fatalf("%d arrivals, want 1", len(due))
		}
		if due[0] >= time.Second {
			late++
		}
	}
	if want := 1000 * 0.9 / 1.9; math.Abs(float64(late)-want) > 50 { // three standard deviations
		t.Errorf("%d of 1000 came in the last 0.9 s, want about %.0f", late, want)
	}
}

// wobbling is another package's shape whose inverse is worse than it says.
type wobbling struct{ outside }

func (wobbling) Span() time.Duration            { return 10 }
func (wobbling) Integral(time.Duration) float64 { return 6 }
func (wobbling) Invert(n float64) time.Duration { return []time.Duration{-3, 4, 2, 7, 12, 5}[int(n)] }

func TestInstantsStayInOrderWithinTheSpanWhateverTheInverseSays(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 4, 4, 7, 9, 9}
	if got := instants(process(t, wobbling{}, arrival.Constant, 0)); !slices.Equal(got, want) {
		t.Errorf("instants %v, want %v", got, want)
	}
	for seed := range uint64(20) {
		due := instants(process(t, wobbling{}, arrival.Poisson, seed))
		if !slices.IsSorted(due) || due[0] < 0 || due[5] > 9 {
			t.Errorf("seed %d: instants %v", seed, due)
		}
	}
}

type broken struct {
	outside

	span     time.Duration
	integral float64
}

func (b broken) Span() time.Duration            { return b.span }
func (b broken) Integral(time.Duration) float64 { return b.integral }
func (b broken) Invert(n float64) time.Duration { return time.Duration(n) }
func (b broken) Rate(t time.Duration) float64   { return b.outside.Rate(t) }

func TestFromShapeRefusesWhatCannotBeOffered(t *testing.T) {
	t.Parallel()
	flat, ramp := must(arrival.NewFlat(10, time.Second)), must(arrival.NewRamp(1, 2, time.Second))
	file := must(arrival.NewReplay([]time.Duration{0, 5}))
	for _, row := range []struct {
		name  string
		shape arrival.Shape
		kind  string
		want  error
	}{
		{"a kind that does not exist, flat", flat, "bursty", arrival.ErrUnknownKind},
		{"a kind that does not exist", ramp, "bursty", arrival.ErrUnknownKind},
		{"a kind that does not exist, of a replay", file, "bursty", arrival.ErrUnknownKind},
		{"a pause alone", must(arrival.NewFlat(0, time.Second)), arrival.Constant, arrival.ErrNothingOffered},
		{"steps of nothing", must(arrival.NewSteps([]float64{0, 0}, time.Second)), arrival.Poisson, arrival.ErrNothingOffered},
		{"a replay as a Poisson process", file, arrival.Poisson, arrival.ErrReplayIsNotRandom},
		{"a replay within one", must(arrival.NewSequence(flat, file)), arrival.Poisson, arrival.ErrReplayIsNotRandom},
		{"another package's, no number", broken{span: 1, integral: math.NaN()}, arrival.Constant, arrival.ErrBadShape},
		{"another package's, negative", broken{span: 1, integral: -1}, arrival.Constant, arrival.ErrBadShape},
		{"another package's, no span", broken{integral: 1}, arrival.Constant, arrival.ErrBadSpan},
		{"another package's, too long", broken{span: arrival.MaxSpan + 1, integral: 1}, arrival.Constant, arrival.ErrLongSpan},
		{"another package's, too many", broken{span: 1, integral: 1e15}, arrival.Constant, arrival.ErrTooMany},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := arrival.FromShape(row.shape, row.kind, 1); !errors.Is(err, row.want) {
				t.Errorf("error %v, want %v", err, row.want)
			}
		})
	}
}

func BenchmarkShapes(b *testing.B) {
	const day = 24 * time.Hour
	flat := must(arrival.NewFlat(3333.3, 90*day))
	sine := must(arrival.NewSine(3000, 2900, time.Hour, 90*day))
	file := make([]time.Duration, 1_000_000)
	for i := range file {
		file[i] = time.Duration(i) * time.Microsecond
	}
	for _, row := range []struct {
		name  string
		shape arrival.Shape
	}{
		{"flat", flat},
		{"ramp", must(arrival.NewRamp(0, 6000, 90*day))},
		{"sine", sine},
		{"sequence", must(arrival.NewSequence(
			must(arrival.NewFlat(3000, 2*time.Millisecond)), must(arrival.NewFlat(3333.3, 80*day)), must(arrival.NewFlat(1, day))))},
		{"sequence of sines", must(arrival.NewSequence(
			must(arrival.NewFlat(0.3, 12*time.Second)), must(arrival.NewSine(3000, 2900, time.Hour, 80*day))))},
		{"replay", must(arrival.NewReplay(file))},
	} {
		for _, kind := range []string{arrival.Constant, arrival.Poisson} {
			if row.name == "replay" && kind == arrival.Poisson {
				continue
			}
			b.Run(row.name+"/"+kind, func(b *testing.B) {
				p, err := arrival.FromShape(row.shape, kind, 1)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, more := p.Next(); !more { // only the replay is short
						p, _ = arrival.FromShape(row.shape, kind, 1)
					}
				}
			})
		}
	}
}
