package publish

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func newCatchUp(perSecond float64) *CatchUp {
	return NewCatchUp(Bounded, func(time.Duration) float64 { return perSecond })
}

func TestArrivalsOnTimePassAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, began := newCatchUp(1000), time.Now()
		for range 5000 {
			if !c.Wait(t.Context(), 0, LateAfter-1) {
				t.Fatal("an arrival on time was refused")
			}
		}
		if took := time.Since(began); took != 0 || c.Late() != 0 {
			t.Errorf("5000 arrivals on time waited %v, %d counted as late", took, c.Late())
		}
	})
}

// TestAfterAPauseTheRateStaysUnderTheBound makes up for a pause of 2 s at 1000/s: without the bound the 2000 would go out
// in one burst, and would measure the pause.
func TestAfterAPauseTheRateStaysUnderTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate, pause = 1000, 2 * time.Second
		c, began := newCatchUp(rate), time.Now()
		time.Sleep(pause)
		resumed, sent := time.Now(), 0
		for due := began; ; due = due.Add(time.Second / rate) {
			if wait := time.Until(due); wait > 0 {
				time.Sleep(wait)
			}
			if !c.Wait(t.Context(), 0, time.Since(due)) {
				t.Fatal("refused")
			}
			sent++
			if allowed := int(time.Since(resumed).Seconds()*rate*CatchUpBound) + 11; sent > allowed { // a burst of 10 ms and the first
				t.Fatalf("%d sent within %v of the pause's end, want at most %d", sent, time.Since(resumed), allowed)
			}
			if time.Since(due) < LateAfter {
				break
			}
		}
		// 2000 late and 240 a second more than the rate: about 8.3 s.
		if took := time.Since(resumed); took < 8*time.Second || took > 8500*time.Millisecond {
			t.Errorf("caught up after %v, want a little over 8s", took)
		}
		if late := c.Late(); late < 9000 || late > 10_500 {
			t.Errorf("%d were late, want about 10000", late)
		}
	})
}

// TestLateAndPunctualArrivalsShareTheBound mixes both, as when only some lag.
func TestLateAndPunctualArrivalsShareTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, began := newCatchUp(100), time.Now()
		for range 500 {
			c.Wait(t.Context(), 0, 0)
			c.Wait(t.Context(), 0, time.Second)
		}
		if took := time.Since(began); took < 7900*time.Millisecond {
			t.Errorf("1000 arrivals went out within %v, want at most 125 a second", took)
		}
	})
}

func TestASlowRateStillLetsOneThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, began := newCatchUp(2), time.Now()
		for range 3 {
			if !c.Wait(t.Context(), 0, time.Minute) {
				t.Fatal("refused")
			}
		}
		if took := time.Since(began); took < 800*time.Millisecond || took > 810*time.Millisecond {
			t.Errorf("three late arrivals at two a second took %v, want a little over 800ms", took)
		}
	})
}

func TestTheHardStopEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCatchUp(1)
		ctx, cancel := context.WithCancel(t.Context())
		c.Wait(ctx, 0, time.Minute)
		go func() {
			time.Sleep(500 * time.Millisecond)
			cancel()
		}()
		began := time.Now()
		if c.Wait(ctx, 0, time.Minute) || time.Since(began) != 500*time.Millisecond {
			t.Errorf("the wait ended after %v", time.Since(began))
		}
	})
}
