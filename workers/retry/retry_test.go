package retry_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"spillway/workers/retry"
)

// setup returns a budget of 5 attempts, 2 for unknown failures, an hour, and three tiers with three sub-tiers each.
func setup() *retry.Budget {
	tier := func(name string, d time.Duration) retry.Tier {
		return retry.Tier{Name: name, Routes: []retry.Route{
			{Key: name + ".a", Delay: d * 8 / 10}, {Key: name + ".b", Delay: d}, {Key: name + ".c", Delay: d * 12 / 10},
		}}
	}
	return &retry.Budget{Attempts: 5, UnknownAttempts: 2, MaxAge: time.Hour, Tiers: []retry.Tier{
		tier("5s", 5*time.Second), tier("30s", 30*time.Second), tier("5m", 5*time.Minute),
	}}
}

func to(tier, key string, delay time.Duration) retry.Decision {
	return retry.Decision{Tier: tier, Key: key, Delay: delay}
}

func parked(r retry.Reason) retry.Decision { return retry.Decision{Park: true, Reason: r} }

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		f    retry.Failure
		want retry.Decision
	}{
		{"the first attempt goes to the first tier",
			retry.Failure{Class: retry.Transient, Attempt: 1}, to("5s", "5s.a", 4*time.Second)},
		{"the second goes to the second",
			retry.Failure{Class: retry.Transient, Attempt: 2, Spread: 0.34}, to("30s", "30s.b", 30*time.Second)},
		{"attempts beyond the tiers stay in the last",
			retry.Failure{Class: retry.Transient, Attempt: 4, Spread: 0.999}, to("5m", "5m.c", 6*time.Minute)},
		{"the last attempt parks",
			retry.Failure{Class: retry.Transient, Attempt: 5}, parked(retry.AttemptsExhausted)},
		{"an attempt that was never counted is the first",
			retry.Failure{Class: retry.Transient}, to("5s", "5s.a", 4*time.Second)},
		{"a permanent failure parks on attempt 1 with its own reason",
			retry.Failure{Class: retry.Permanent, Reason: retry.BadJSON, Attempt: 1}, parked(retry.BadJSON)},
		{"a permanent failure with a reason outside the set parks as permanent",
			retry.Failure{Class: retry.Permanent, Reason: "pq: oops", Attempt: 1}, parked(retry.PermanentFailure)},
		{"an unknown failure is retried within its smaller budget",
			retry.Failure{Class: retry.Unknown, Attempt: 1}, to("5s", "5s.a", 4*time.Second)},
		{"an unknown failure parks when that is used up",
			retry.Failure{Class: retry.Unknown, Attempt: 2}, parked(retry.UnknownExhausted)},
		{"a failure of no class has the budget of unknown ones",
			retry.Failure{Attempt: 2}, parked(retry.UnknownExhausted)},
		{"a message as old as the age budget parks",
			retry.Failure{Class: retry.Transient, Attempt: 1, Born: -time.Minute, Now: 59 * time.Minute},
			parked(retry.AgeExhausted)},
		{"a message one tick younger is retried, although it returns too old",
			retry.Failure{Class: retry.Transient, Attempt: 1, Born: -time.Minute, Now: 59*time.Minute - 1},
			to("5s", "5s.a", 4*time.Second)},
		{"a passed deadline parks",
			retry.Failure{Class: retry.Transient, Attempt: 1, Now: 10 * time.Second, Deadline: 9 * time.Second},
			parked(retry.DeadlinePassed)},
		{"a deadline that passes in the tier parks at once",
			retry.Failure{Class: retry.Transient, Attempt: 1, Now: 10 * time.Second, Deadline: 14 * time.Second},
			parked(retry.DeadlinePassed)},
		{"a deadline after the return leaves the retry",
			retry.Failure{Class: retry.Transient, Attempt: 1, Now: 10 * time.Second, Deadline: 14*time.Second + 1},
			to("5s", "5s.a", 4*time.Second)},
		{"a deadline before the run began has passed",
			retry.Failure{Class: retry.Transient, Attempt: 1, Now: 1, Deadline: -time.Second}, parked(retry.DeadlinePassed)},
		{"not-yet costs no attempts",
			retry.Failure{Class: retry.NotYet, Attempt: 99}, to("5m", "5m.a", 4*time.Minute)},
		{"not-yet ends at its deadline",
			retry.Failure{Class: retry.NotYet, Attempt: 1, Now: time.Minute, Deadline: time.Minute}, parked(retry.DeadlinePassed)},
		{"attempts are judged before age",
			retry.Failure{Class: retry.Transient, Attempt: 5, Now: 2 * time.Hour}, parked(retry.AttemptsExhausted)},
		{"age is judged before the deadline",
			retry.Failure{Class: retry.Transient, Attempt: 1, Now: 2 * time.Hour, Deadline: 1}, parked(retry.AgeExhausted)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := setup().Decide(row.f); got != row.want {
				t.Errorf("decided %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestABudgetWithoutBounds(t *testing.T) {
	t.Parallel()
	tiers := setup().Tiers
	for _, row := range []struct {
		name   string
		budget retry.Budget
		f      retry.Failure
		want   retry.Decision
	}{
		{"the zero budget parks", retry.Budget{},
			retry.Failure{Class: retry.Transient, Attempt: 1}, parked(retry.AttemptsExhausted)},
		{"no tiers parks", retry.Budget{Attempts: 9},
			retry.Failure{Class: retry.Transient, Attempt: 1}, parked(retry.AttemptsExhausted)},
		{"a tier without a queue parks", retry.Budget{Attempts: 9, Tiers: []retry.Tier{{Name: "5s"}}},
			retry.Failure{Class: retry.NotYet, Attempt: 1, Deadline: time.Hour}, parked(retry.AttemptsExhausted)},
		{"no age budget never ages", retry.Budget{Attempts: 9, Tiers: tiers},
			retry.Failure{Class: retry.Transient, Attempt: 1, Now: 1e6 * time.Hour}, to("5s", "5s.a", 4*time.Second)},
		{"not-yet without any other bound counts attempts", retry.Budget{Attempts: 9, Tiers: tiers},
			retry.Failure{Class: retry.NotYet, Attempt: 9}, parked(retry.AttemptsExhausted)},
		{"unknown attempts above attempts have no effect", retry.Budget{Attempts: 2, UnknownAttempts: 9, Tiers: tiers},
			retry.Failure{Class: retry.Unknown, Attempt: 2}, parked(retry.UnknownExhausted)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.budget.Decide(row.f); got != row.want {
				t.Errorf("decided %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestEveryDecisionIsOneRouteOrOneReason(t *testing.T) {
	t.Parallel()
	b, draw := setup(), rand.New(rand.NewPCG(3, 4))
	spreads := []float64{-1, 0, 0.5, 1, 7, math.NaN(), math.Inf(1)}
	for range 20_000 {
		f := retry.Failure{
			Class: retry.Class(draw.IntN(6)), Reason: retry.Reasons()[draw.IntN(11)], Attempt: draw.IntN(12) - 2,
			Born: within(draw, 2*time.Hour), Now: within(draw, 4*time.Hour), Deadline: max(0, within(draw, 6*time.Hour)-2*time.Hour),
			Spread: spreads[draw.IntN(len(spreads))],
		}
		d := b.Decide(f)
		if d.Park && (d != parked(d.Reason) || !slices.Contains(retry.Reasons(), d.Reason)) {
			t.Fatalf("%+v parks as %+v", f, d)
		}
		if !d.Park && !hasRoute(b, d) {
			t.Fatalf("%+v is routed as %+v", f, d)
		}
	}
}

func within(draw *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(draw.Int64N(int64(d)))
}

func hasRoute(b *retry.Budget, d retry.Decision) bool {
	return d.Reason == "" && slices.ContainsFunc(b.Tiers, func(t retry.Tier) bool {
		return t.Name == d.Tier && slices.Contains(t.Routes, retry.Route{Key: d.Key, Delay: d.Delay})
	})
}

func TestAMessageIsRetriedFewerTimesThanItHasAttempts(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		b := setup()
		b.Attempts, b.UnknownAttempts = 1+draw.IntN(30), 1+draw.IntN(30)
		b.MaxAge = within(draw, 10*time.Hour)
		retries, now := 0, time.Duration(0)
		for attempt := 1; ; attempt++ {
			class := []retry.Class{retry.Transient, retry.Unknown, retry.Transient, 0}[draw.IntN(4)]
			d := b.Decide(retry.Failure{Class: class, Attempt: attempt, Now: now, Spread: draw.Float64()})
			if d.Park {
				break
			}
			retries, now = retries+1, now+d.Delay
		}
		if retries >= b.Attempts {
			t.Fatalf("%d retries with a budget of %d attempts", retries, b.Attempts)
		}
	}
}

func TestSpreadIsUniformAndRepeatable(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(i int) float64{
		"over messages":            func(i int) float64 { return retry.Spread(fmt.Sprintf("id-%d", i), int64(i), 1, 7) },
		"over ids alone":           func(i int) float64 { return retry.Spread(fmt.Sprintf("id-%d", i), -1, 1, 7) },
		"over messages without id": func(i int) float64 { return retry.Spread("", int64(i), 1, 7) },
		"over attempts":            func(i int) float64 { return retry.Spread("id", 1, i, 7) },
		"over seeds":               func(i int) float64 { return retry.Spread("id", 1, 1, uint64(i)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bins [3]int
			for i := range 30_000 {
				s := draw(i)
				if s < 0 || s >= 1 || s != draw(i) {
					t.Fatalf("draw %d is %v, then %v", i, s, draw(i))
				}
				bins[int(s*3)]++
			}
			for _, n := range bins { // 10,000 expected, standard deviation 82
				if n < 9_600 || n > 10_400 {
					t.Errorf("bins %v, want about 10000 each", bins)
				}
			}
		})
	}
}

func TestNamesAreAClosedSet(t *testing.T) {
	t.Parallel()
	want := []retry.Reason{
		"bad-json", "missing-field", "unknown-schema", "empty-id", "forbidden-transition", "constraint", "permanent",
		"attempts-exhausted", "unknown-exhausted", "age-exhausted", "deadline-passed", "budget-exhausted",
	}
	if got := retry.Reasons(); !slices.Equal(got, want) {
		t.Errorf("reasons %q, want %q", got, want)
	}
	names := make([]string, 0, len(retry.Classes))
	for _, c := range retry.Classes {
		names = append(names, c.String())
	}
	if want := []string{"transient", "permanent", "unknown", "not-yet"}; !slices.Equal(names, want) {
		t.Errorf("classes %q, want %q", names, want)
	}
	if got := retry.Class(0).String(); got != "invalid" {
		t.Errorf("the zero class is %q, want invalid", got)
	}
}
