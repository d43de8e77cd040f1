package service_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"spillway/workers/service"
)

const samples = 100_000

// setup draws sorted samples from a distribution with mean 10 ms, from 5 to 15 ms, sigma 0.5.
func setup(t *testing.T, distribution string) []float64 {
	t.Helper()
	d, err := service.NewTime(distribution, 10*time.Millisecond, 5*time.Millisecond, 15*time.Millisecond, 0.5, 42)
	if err != nil {
		t.Fatal(err)
	}
	ms := make([]float64, samples)
	for i := range ms {
		ms[i] = d.Draw(int64(i), 1).Seconds() * 1e3
	}
	slices.Sort(ms)
	return ms
}

func mean(of []float64) (sum float64) {
	for _, x := range of {
		sum += x
	}
	return sum / float64(len(of))
}

func TestDistributionsHaveTheirMeanAndQuantiles(t *testing.T) {
	t.Parallel()
	lognormal := func(z float64) float64 { return 10 * math.Exp(0.5*z-0.125) }
	for _, row := range []struct {
		name, distribution string
		p10, p50, p99      float64 // milliseconds
	}{
		{"fixed is always the mean", service.Fixed, 10, 10, 10},
		{"uniform lies evenly from min to max", service.Uniform, 6, 10, 14.9},
		{"exponential has its median at ln 2 of the mean", service.Exponential, 1.0536, 6.9315, 46.052},
		{"lognormal has its median below the mean", service.Lognormal, lognormal(-1.28155), lognormal(0), lognormal(2.32635)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ms := setup(t, row.distribution)
			near(t, "mean", mean(ms), 10, 0.01)
			near(t, "p10", ms[samples/10], row.p10, 0.03)
			near(t, "p50", ms[samples/2], row.p50, 0.02)
			near(t, "p99", ms[samples*99/100], row.p99, 0.03)
		})
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s %.4f, want %.4f within %.0f %%", what, got, want, tolerance*100)
	}
}

func TestADrawIsDecidedBySeedSequenceAndAttempt(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, seq int64, attempt int) time.Duration {
		d, err := service.NewTime(service.Exponential, time.Second, 0, 0, 0, seed)
		if err != nil {
			t.Fatal(err)
		}
		return d.Draw(seq, attempt)
	}
	first := draw(1, 2, 3)
	if again := draw(1, 2, 3); again != first {
		t.Errorf("the same arguments drew %s, then %s", first, again)
	}
	for name, other := range map[string]time.Duration{
		"seed": draw(9, 2, 3), "sequence": draw(1, 9, 3), "attempt": draw(1, 2, 9),
	} {
		if other == first {
			t.Errorf("another %s drew the same time %s", name, other)
		}
	}
}

func TestTimesHaveAnEnd(t *testing.T) {
	t.Parallel()
	d, err := service.NewTime(service.Lognormal, time.Hour, 0, 0, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range int64(10_000) {
		if got := d.Draw(seq, 1); got < 0 || got > service.MaxTime {
			t.Fatalf("drew %s", got)
		}
	}
	if got := (service.Time{}).Draw(1, 1); got != 0 {
		t.Errorf("the zero Time drew %s", got)
	}
}

func TestImpossibleTimesAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, distribution string
		mean, low, high    time.Duration
		sigma              float64
		want               error
	}{
		{"a distribution that does not exist", "gamma", 1, 1, 1, 1, service.ErrUnknownDistribution},
		{"no distribution", "", 1, 1, 1, 1, service.ErrUnknownDistribution},
		{"a negative mean", service.Fixed, -1, 0, 0, 0, service.ErrBadTime},
		{"a negative exponential mean", service.Exponential, -1, 0, 0, 0, service.ErrBadTime},
		{"a negative lognormal mean", service.Lognormal, -1, 0, 0, 0.5, service.ErrBadTime},
		{"a minimum above the maximum", service.Uniform, 0, 2, 1, 0, service.ErrBadTime},
		{"a negative minimum", service.Uniform, 0, -1, 1, 0, service.ErrBadTime},
		{"a negative sigma", service.Lognormal, 1, 0, 0, -0.5, service.ErrBadTime},
		{"a sigma that is no number", service.Lognormal, 1, 0, 0, math.NaN(), service.ErrBadTime},
		{"an infinite sigma", service.Lognormal, 1, 0, 0, math.Inf(1), service.ErrBadTime},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := service.NewTime(row.distribution, row.mean, row.low, row.high, row.sigma, 1)
			if !errors.Is(err, row.want) {
				t.Errorf("error %v, want %v", err, row.want)
			}
		})
	}
}

func TestFatesComeInTheirShares(t *testing.T) {
	t.Parallel()
	shares := service.Shares{Transient: 0.2, Permanent: 0.05, Refused: 0.1, Dies: 0.02, Unknown: 0.01}
	for attempt := 1; attempt <= 3; attempt++ {
		var seen [6]float64
		for seq := range int64(samples) {
			seen[service.Draw(shares, 7, seq, attempt)] += 1.0 / samples
		}
		for fate, want := range map[service.Fate]float64{
			service.Permanent: 0.05, service.Refused: 0.1, service.Dies: 0.02, service.Transient: 0.83 * 0.2, service.Unknown: 0.83 * 0.01,
		} {
			if got := seen[fate]; math.Abs(got-want) > 0.004 {
				t.Errorf("attempt %d: %s has a share of %.4f, want %.4f", attempt, fate, got, want)
			}
		}
	}
}

func TestAMessageKeepsItsFateAndAnAttemptDoesNot(t *testing.T) {
	t.Parallel()
	shares := service.Shares{Transient: 0.5, Permanent: 0.2, Refused: 0.2}
	changed := 0
	for seq := range int64(10_000) {
		first, second := service.Draw(shares, 7, seq, 1), service.Draw(shares, 7, seq, 2)
		ofMessage := first == service.Permanent || first == service.Refused
		if ofMessage && second != first {
			t.Fatalf("message %d is %s, then %s", seq, first, second)
		}
		if first != second {
			changed++
		}
	}
	if changed < 2_700 || changed > 3_300 { // 0.6 of the messages, half of which change
		t.Errorf("%d messages met another fate on attempt 2, want about 3000", changed)
	}
}

func TestTheEndsOfTheShares(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		shares service.Shares
		want   service.Fate
	}{
		{"no shares never fail", service.Shares{}, service.None},
		{"all transient always fail", service.Shares{Transient: 1}, service.Transient},
		{"all permanent always fail", service.Shares{Permanent: 1}, service.Permanent},
		{"all refused are always refused", service.Shares{Refused: 1}, service.Refused},
		{"all dying always die", service.Shares{Dies: 1}, service.Dies},
		{"all unknown always fail", service.Shares{Unknown: 1}, service.Unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for seq := range int64(5_000) {
				if got := service.Draw(row.shares, 1, seq, 1); got != row.want {
					t.Fatalf("message %d: %s, want %s", seq, got, row.want)
				}
			}
		})
	}
}

func TestFailingDoesNotDependOnTheServiceTime(t *testing.T) {
	t.Parallel()
	d, err := service.NewTime(service.Uniform, 0, 0, time.Second, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	var failed []float64
	for seq := range int64(samples) {
		if service.Draw(service.Shares{Transient: 0.1}, 7, seq, 1) == service.Transient {
			failed = append(failed, d.Draw(seq, 1).Seconds())
		}
	}
	near(t, "mean service time of the failed", mean(failed), 0.5, 0.03)
}

func TestNamesOfFates(t *testing.T) {
	t.Parallel()
	for f, want := range []string{"none", "transient", "permanent", "refused", "dies", "unknown", "invalid"} {
		if got := service.Fate(f).String(); got != want {
			t.Errorf("fate %d is %q, want %q", f, got, want)
		}
	}
}
