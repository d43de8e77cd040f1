package retry

import (
	"testing"
	"time"
)

// spend takes n tokens at a time and returns how many there were.
func spend(t *Tokens, now time.Duration, n int) (got int) {
	for range n {
		if t.Spend(now) {
			got++
		}
	}
	return got
}

func first(t *Tokens, now time.Duration, n int) {
	for range n {
		t.First(now)
	}
}

func TestRetriesAreAShareOfFirstAttemptsAndAFloor(t *testing.T) {
	t.Parallel()
	b := NewTokens(TokenSettings{Ratio: 0.2, Floor: 1})
	if got := spend(b, 0, 100); got != 10 {
		t.Errorf("%d retries without traffic, want the floor of 10 s: 10", got)
	}
	first(b, 500*time.Millisecond, 100)
	if got := spend(b, 600*time.Millisecond, 100); got != 20 {
		t.Errorf("%d retries after 100 first attempts, want 20", got)
	}
	if got := spend(b, 9*time.Second, 100); got != 0 {
		t.Errorf("%d retries while those before are remembered, want none", got)
	}
	if got := spend(b, 12*time.Second, 100); got != 10 {
		t.Errorf("%d retries when all is forgotten, want 10", got)
	}
}

func TestABudgetThatIsSteadilyUsedLetsItsShareThrough(t *testing.T) {
	t.Parallel()
	b := NewTokens(TokenSettings{Ratio: 0.1})
	let := 0
	for second := range 100 {
		at := time.Duration(second) * time.Second
		first(b, at, 100)
		let += spend(b, at, 100) // every one of them fails
	}
	if let < 950 || let > 1100 {
		t.Errorf("%d retries of 10,000 failures at a ratio of 0.1, want about 1,000", let)
	}
}

func TestTimesOutOfOrderDoNotEmptyASlot(t *testing.T) {
	t.Parallel()
	b := NewTokens(TokenSettings{Ratio: 1})
	b.First(11 * time.Second)
	b.First(time.Second) // of the same slot, ten seconds before
	if got := spend(b, 11*time.Second, 5); got != 2 {
		t.Errorf("%d tokens, want 2", got)
	}
}

func TestWithoutARatioEverythingIsAllowed(t *testing.T) {
	t.Parallel()
	b := NewTokens(TokenSettings{Floor: 1})
	b.First(0)
	if got := spend(b, 0, 1000); got != 1000 {
		t.Errorf("%d of 1,000", got)
	}
}

func TestWhatHasNoTokenIsParkedOrWaitsInTheLastTier(t *testing.T) {
	t.Parallel()
	b := Budget{Tiers: []Tier{{Name: "1s", Routes: []Route{{Key: "1s", Delay: time.Second}}}, {Name: "9s", Routes: []Route{{Key: "9s.1", Delay: 8 * time.Second}, {Key: "9s.2", Delay: 9 * time.Second}}}}}
	near := Decision{Tier: "1s", Key: "1s", Delay: time.Second}
	if got := b.Over(near, TokenSettings{}); !got.Park || got.Reason != BudgetExhausted {
		t.Errorf("over the budget: %+v", got)
	}
	if got := b.Over(near, TokenSettings{Defer: true}); got != (Decision{Tier: "9s", Key: "9s.1", Delay: 8 * time.Second}) {
		t.Errorf("deferred: %+v", got)
	}
	far := Decision{Tier: "9s", Key: "9s.2", Delay: 9 * time.Second}
	if got := b.Over(far, TokenSettings{Defer: true}); got != far {
		t.Errorf("deferred from the last tier: %+v", got)
	}
}
