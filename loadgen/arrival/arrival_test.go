package arrival_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"spillway/loadgen/arrival"
)

func instants(p arrival.Process) []time.Duration {
	var due []time.Duration
	for {
		d, ok := p.Next()
		if !ok {
			return due
		}
		due = append(due, d)
	}
}

func TestTotalIsTheIntegralOfTheRate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		rate float64
		span time.Duration
		want int64
	}{
		{"a whole product", 1500, 30 * time.Second, 45_000},
		{"a tenth for thirty seconds is three", 0.1, 30 * time.Second, 3},
		{"three tenths for ten seconds is three although the float is below", 0.3, 10 * time.Second, 3},
		{"0.29 x 100 is 29 although floats say 28.999", 0.29, 100 * time.Second, 29},
		{"1.1 x 10 is 11", 1.1, 10 * time.Second, 11},
		{"a broken product is rounded down", 2.5, time.Second, 2},
		{"a span too short for one arrival has none", 1, 999 * time.Millisecond, 0},
		{"a third, as near as a float comes, does not make one in three seconds", 1.0 / 3, 3 * time.Second, 0},
		{"a high rate for a day", 50_000, 24 * time.Hour, 4_320_000_000},
		{"a rate above one a nanosecond", 4e9, time.Microsecond, 4000},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{arrival.Constant, arrival.Poisson} {
				p, err := arrival.New(kind, row.rate, row.span, 1)
				if err != nil {
					t.Fatal(err)
				}
				if got := p.Total(); got != row.want {
					t.Errorf("%s: total %d, want %d", kind, got, row.want)
				}
			}
		})
	}
}

func TestAProcessYieldsItsTotalInOrderWithinTheSpan(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rate := math.Exp(draw.Float64()*16 - 5)
		span := time.Duration(1 + draw.Int64N(int64(min(20, 5000/rate)*1e9)+1))
		for _, kind := range []string{arrival.Constant, arrival.Poisson} {
			p, err := arrival.New(kind, rate, span, draw.Uint64())
			if err != nil {
				t.Fatal(err)
			}
			due := instants(p)
			if int64(len(due)) != p.Total() {
				t.Fatalf("%s at %v/s for %s: %d instants, total %d", kind, rate, span, len(due), p.Total())
			}
			if !slices.IsSorted(due) {
				t.Fatalf("%s at %v/s for %s: instants go back", kind, rate, span)
			}
			if n := len(due); n > 0 && (due[0] < 0 || due[n-1] >= span) {
				t.Fatalf("%s at %v/s for %s: instants from %s to %s", kind, rate, span, due[0], due[n-1])
			}
		}
	}
}

func TestConstantArrivalsDoNotDrift(t *testing.T) {
	t.Parallel()
	due := instants(arrival.NewConstant(3000, 100*time.Second))
	for second := range 100 {
		if got, want := due[second*3000], time.Duration(second)*time.Second; got != want {
			t.Fatalf("arrival %d is due at %s, want %s", second*3000, got, want)
		}
	}
	if got, want := due[1], 333_333*time.Nanosecond; got != want {
		t.Errorf("arrival 1 is due at %s, want %s", got, want)
	}
}

func TestAWarmUpHoldsExactlyItsShareOfConstantArrivals(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.5, 3, 7, 1500, 33_333} {
		warm := 0
		for _, due := range instants(arrival.NewConstant(rate, 6*time.Second)) {
			if due < 2*time.Second {
				warm++
			}
		}
		if want := int(rate * 2); warm != want {
			t.Errorf("at %v/s %d arrivals are due in the first two seconds, want %d", rate, warm, want)
		}
	}
}

func TestPoissonGapsAreExponential(t *testing.T) {
	t.Parallel()
	const rate, n = 1000.0, 20_000
	for seed := range uint64(5) {
		due := instants(arrival.NewPoisson(rate, n/rate*time.Second, seed))
		gaps := make([]float64, n)
		for i, last := 0, time.Duration(0); i < n; i++ {
			gaps[i], last = (due[i] - last).Seconds(), due[i]
		}
		d := kolmogorov(gaps, func(x float64) float64 { return 1 - math.Exp(-rate*x) })
		if limit := 1.95 / math.Sqrt(n); d > limit { // 1.95: one true sample in a thousand is farther away
			t.Errorf("seed %d: gaps are %.4f away from exponential, limit %.4f", seed, d, limit)
		}
	}
}

func TestPoissonInstantsAreUniformOverTheSpan(t *testing.T) {
	t.Parallel()
	const n = 20_000
	due := instants(arrival.NewPoisson(n, time.Second, 9))
	at := make([]float64, n)
	for i, d := range due {
		at[i] = d.Seconds()
	}
	if d, limit := kolmogorov(at, func(x float64) float64 { return x }), 1.95/math.Sqrt(n); d > limit {
		t.Errorf("instants are %.4f away from uniform, limit %.4f", d, limit)
	}
}

// kolmogorov returns the largest distance between the samples' distribution and the given one.
func kolmogorov(samples []float64, cdf func(float64) float64) (distance float64) {
	slices.Sort(samples)
	n := float64(len(samples))
	for i, x := range samples {
		p := cdf(x)
		distance = max(distance, math.Abs(p-float64(i)/n), math.Abs(float64(i+1)/n-p))
	}
	return distance
}

func TestTheSeedDecidesPoissonInstants(t *testing.T) {
	t.Parallel()
	first := instants(arrival.NewPoisson(500, 4*time.Second, 7))
	if again := instants(arrival.NewPoisson(500, 4*time.Second, 7)); !slices.Equal(first, again) {
		t.Error("the same seed gave other instants")
	}
	if other := instants(arrival.NewPoisson(500, 4*time.Second, 8)); slices.Equal(first, other) {
		t.Error("another seed gave the same instants")
	}
}

func TestImpossibleArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		kind string
		rate float64
		span time.Duration
		want error
	}{
		{"a kind that does not exist", "bursty", 1, time.Second, arrival.ErrUnknownKind},
		{"no rate", arrival.Constant, 0, time.Second, arrival.ErrBadRate},
		{"a negative rate", arrival.Poisson, -1, time.Second, arrival.ErrBadRate},
		{"a rate that is no number", arrival.Poisson, math.NaN(), time.Second, arrival.ErrBadRate},
		{"an infinite rate", arrival.Constant, math.Inf(1), time.Second, arrival.ErrBadRate},
		{"no span", arrival.Constant, 1, 0, arrival.ErrBadSpan},
		{"more arrivals than sequences", arrival.Constant, 1e12, time.Hour, arrival.ErrTooMany},
		{"more arrivals than an int64", arrival.Poisson, 1e300, time.Hour, arrival.ErrTooMany},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := arrival.New(row.kind, row.rate, row.span, 1); !errors.Is(err, row.want) {
				t.Errorf("error %v, want %v", err, row.want)
			}
		})
	}
}

func TestWhatNewRefusesGivesAnEmptyProcess(t *testing.T) {
	t.Parallel()
	for _, p := range []arrival.Process{arrival.NewConstant(0, time.Second), arrival.NewPoisson(1, -time.Second, 1)} {
		if due, ok := p.Next(); ok || p.Total() != 0 {
			t.Errorf("%T: due %s, %v, total %d; want nothing", p, due, ok, p.Total())
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, kind := range []string{arrival.Constant, arrival.Poisson} {
		b.Run(kind, func(b *testing.B) {
			p, err := arrival.New(kind, 3333.3, time.Hour*24*365, 1)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				p.Next()
			}
		})
	}
}
