package breaker_test

import (
	"slices"
	"testing"
	"time"

	"spillway/workers/breaker"
)

// setup returns a breaker that opens at half of at least 4 results within 10 s, for 1 s, and closes after 3 probes.
func setup() *breaker.Breaker {
	return breaker.New(breaker.Settings{
		FailureRatio: 0.5, Window: 10 * time.Second, MinSamples: 4, OpenFor: time.Second, Probes: 3,
	})
}

// handle runs one handler at now.
func handle(t *testing.T, b *breaker.Breaker, success bool, now time.Duration) {
	t.Helper()
	ticket, ok, _ := b.Allow(now)
	if !ok {
		t.Fatalf("not allowed at %s, state %s", now, b.State(now))
	}
	b.Done(ticket, success, now)
}

// open returns a breaker opened at now.
func open(t *testing.T, now time.Duration) *breaker.Breaker {
	t.Helper()
	b := setup()
	for range 4 {
		handle(t, b, false, now)
	}
	wantState(t, b, now, breaker.Open)
	return b
}

// probes takes every probe of a breaker that is half-open at now.
func probes(t *testing.T, b *breaker.Breaker, now time.Duration) []breaker.Ticket {
	t.Helper()
	wantState(t, b, now, breaker.HalfOpen)
	var out []breaker.Ticket
	for {
		ticket, ok, _ := b.Allow(now)
		if !ok {
			return out
		}
		out = append(out, ticket)
	}
}

func wantState(t *testing.T, b *breaker.Breaker, now time.Duration, want breaker.State) {
	t.Helper()
	if got := b.State(now); got != want {
		t.Fatalf("at %s it is %s, want %s", now, got, want)
	}
}

func TestItOpensAtItsRatioOfFailures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		results string // g good, f failed
		want    breaker.State
	}{
		{"too few results never open", "fff", breaker.Closed},
		{"half of enough results opens", "ggff", breaker.Open},
		{"less than half does not", "gggfgf", breaker.Closed},
		{"a success never opens it, though the ratio is reached", "fffg", breaker.Closed},
		{"the next failure after that does", "fffgf", breaker.Open},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup()
			for _, r := range row.results {
				handle(t, b, r == 'g', time.Second)
			}
			wantState(t, b, time.Second, row.want)
		})
	}
}

func TestFailuresLeaveTheWindow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		last time.Duration
		want breaker.State
	}{
		{"inside the window they count", 9900 * time.Millisecond, breaker.Open},
		{"after it they do not", 10 * time.Second, breaker.Closed},
		{"nor a whole lap of the ring later", 20 * time.Second, breaker.Closed},
		{"nor many laps later", time.Hour, breaker.Closed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup()
			for range 3 {
				handle(t, b, false, 100*time.Millisecond)
			}
			handle(t, b, false, row.last)
			wantState(t, b, row.last, row.want)
		})
	}
}

func TestGoodResultsLeaveTheWindowToo(t *testing.T) {
	t.Parallel()
	b := setup()
	for range 1000 {
		handle(t, b, true, 0)
	}
	for range 3 {
		handle(t, b, false, 15*time.Second)
	}
	wantState(t, b, 15*time.Second, breaker.Closed)
	handle(t, b, false, 15*time.Second)
	wantState(t, b, 15*time.Second, breaker.Open)
}

func TestWhileOpenNothingStartsAndTheWaitIsKnown(t *testing.T) {
	t.Parallel()
	b := open(t, 5*time.Second)
	for _, row := range []struct{ now, wait time.Duration }{
		{5 * time.Second, time.Second},
		{5400 * time.Millisecond, 600 * time.Millisecond},
		{6*time.Second - 1, 1},
	} {
		if ticket, ok, wait := b.Allow(row.now); ok || wait != row.wait || ticket != (breaker.Ticket{}) {
			t.Errorf("at %s: ticket %v, allowed %v, wait %s; want none, false, %s", row.now, ticket, ok, wait, row.wait)
		}
	}
	wantState(t, b, 6*time.Second, breaker.HalfOpen)
}

func TestHalfOpenLetsExactlyItsProbesThrough(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	if got := len(probes(t, b, time.Second)); got != 3 {
		t.Fatalf("%d probes, want 3", got)
	}
	if _, ok, wait := b.Allow(time.Minute); ok || wait != 0 {
		t.Errorf("a fourth was allowed %v with wait %s; want refused, wait unknown", ok, wait)
	}
}

func TestAllProbesMustSucceedToClose(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	out := probes(t, b, time.Second)
	b.Done(out[0], true, 1100*time.Millisecond)
	b.Done(out[1], true, 1200*time.Millisecond)
	if _, ok, _ := b.Allow(1200 * time.Millisecond); ok {
		t.Error("a succeeded probe gave its place to a fourth")
	}
	wantState(t, b, 1200*time.Millisecond, breaker.HalfOpen)
	b.Done(out[2], true, 1300*time.Millisecond)
	wantState(t, b, 1300*time.Millisecond, breaker.Closed)
}

func TestOneProbeThatSucceedsTwiceIsOne(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	out := probes(t, b, time.Second)
	for range 3 {
		b.Done(out[0], true, time.Second)
	}
	b.Done(out[0], false, time.Second)
	wantState(t, b, time.Second, breaker.HalfOpen)
}

func TestTheFirstFailedProbeReopensAndTheOthersAreIgnored(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	out := probes(t, b, time.Second)
	b.Done(out[0], true, 1100*time.Millisecond)
	b.Done(out[1], false, 1500*time.Millisecond)
	wantState(t, b, 2400*time.Millisecond, breaker.Open)
	b.Done(out[2], true, 2400*time.Millisecond)
	wantState(t, b, 2500*time.Millisecond, breaker.HalfOpen)
	b.Done(out[2], true, 2500*time.Millisecond)
	if got := len(probes(t, b, 2500*time.Millisecond)); got != 3 {
		t.Errorf("%d probes in the second try, want 3", got)
	}
}

func TestACancelledProbeGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	out := probes(t, b, time.Second)
	b.Cancel(out[1], time.Second)
	b.Cancel(out[1], time.Second)
	if got := len(probes(t, b, time.Second)); got != 1 {
		t.Fatalf("%d places after one was given back, want 1", got)
	}
	b.Done(out[1], false, time.Second)
	wantState(t, b, time.Second, breaker.HalfOpen)
	b.Done(out[0], true, time.Second)
	b.Cancel(out[0], time.Second)
	if _, ok, _ := b.Allow(time.Second); ok {
		t.Error("cancelling a probe that succeeded gave its place back")
	}
}

func TestResultsOfAnOlderGenerationAreIgnored(t *testing.T) {
	t.Parallel()
	b := setup()
	slow := make([]breaker.Ticket, 8)
	for i := range slow {
		slow[i], _, _ = b.Allow(0)
	}
	for range 4 {
		handle(t, b, false, 0)
	}
	b.Done(slow[0], true, 0)
	b.Done(slow[1], false, time.Second)
	wantState(t, b, time.Second, breaker.HalfOpen)
	b.Done(slow[2], false, time.Second)
	b.Cancel(slow[3], time.Second)
	for _, p := range probes(t, b, time.Second) {
		b.Done(p, true, time.Second)
	}
	for _, s := range slow[4:] {
		b.Done(s, false, time.Second)
	}
	wantState(t, b, time.Second, breaker.Closed)
	b.Done(breaker.Ticket{}, false, time.Second)
	if got := b.Generation(); got != 4 {
		t.Errorf("generation %d, want 4: closed, open, half-open, closed", got)
	}
}

func TestClosingForgetsWhatFailedBefore(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	for _, p := range probes(t, b, time.Second) {
		b.Done(p, true, time.Second)
	}
	for range 3 {
		handle(t, b, false, time.Second)
	}
	wantState(t, b, time.Second, breaker.Closed)
}

func TestOpenTimeCountsUntilItClosesAndOpeningsCountEach(t *testing.T) {
	t.Parallel()
	b := open(t, 2*time.Second)
	if got := b.OpenFor(2500 * time.Millisecond); got != 500*time.Millisecond {
		t.Errorf("open for %s while open, want 500ms", got)
	}
	b.Done(probes(t, b, 3*time.Second)[0], false, 4*time.Second)
	for _, p := range probes(t, b, 5*time.Second) {
		b.Done(p, true, 6*time.Second)
	}
	if got := b.OpenFor(time.Minute); got != 4*time.Second {
		t.Errorf("open for %s in all, want 4s: from the opening to the close", got)
	}
	if got := b.Opens(); got != 2 {
		t.Errorf("opened %d times, want 2", got)
	}
}

func TestTheClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := open(t, 5*time.Second)
	if _, ok, wait := b.Allow(time.Second); ok || wait != time.Second {
		t.Errorf("allowed %v, wait %s; want refused and 1s, as at 5s", ok, wait)
	}
}

func TestSettingsWithoutSenseBecomeTheNearestThatHave(t *testing.T) {
	t.Parallel()
	b := breaker.New(breaker.Settings{OpenFor: -time.Second})
	handle(t, b, true, 0)
	wantState(t, b, 0, breaker.Closed)
	ticket, _, _ := b.Allow(0)
	b.Done(ticket, false, 0)
	if got := len(probes(t, b, 0)); got != 1 || b.Opens() != 1 {
		t.Errorf("%d probes after %d openings, want 1 after 1", got, b.Opens())
	}
}

func TestNamesOfStates(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(breaker.States))
	for _, s := range breaker.States {
		names = append(names, s.String())
	}
	if want := []string{"closed", "open", "half-open"}; !slices.Equal(names, want) {
		t.Errorf("states %q, want %q", names, want)
	}
	if got := breaker.State(9).String(); got != "invalid" {
		t.Errorf("a state beyond the set is %q, want invalid", got)
	}
}
