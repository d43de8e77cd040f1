package timebase_test

import (
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/timebase"
)

func TestMicrosAndFromMicrosAreInverseToTheMicrosecond(t *testing.T) {
	t.Parallel()
	// Anchors with every kind of fraction: the two floors must never add up to more than one microsecond.
	for _, fraction := range []time.Duration{0, 1, 499, 500, 999, 1000, 123_456_789, 999_999_999} {
		base := timebase.At(time.Unix(1_700_000_000, 0).Add(fraction))
		for _, offset := range []time.Duration{
			0, 1, 999, time.Microsecond, 1999, time.Millisecond + 1, time.Hour, 87_654_321_987, -1, -999, -time.Microsecond, -1999, -time.Hour,
		} {
			back := base.FromMicros(base.Micros(offset))
			if diff := back - offset; diff <= -time.Microsecond || diff >= time.Microsecond {
				t.Errorf("anchor fraction %d: %d came back as %d", fraction, offset, back)
			}
		}
	}
}

func TestWholeMicrosecondsComeBackExactly(t *testing.T) {
	t.Parallel()
	base := timebase.New()
	for _, offset := range []time.Duration{0, time.Microsecond, 17 * time.Millisecond, 3 * time.Hour, -time.Second} {
		if back := base.FromMicros(base.Micros(offset)); back != offset {
			t.Errorf("%v came back as %v", offset, back)
		}
	}
}

func TestTheWallTimeOfAnOffsetIsTheAnchorPlusIt(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	base := timebase.At(start)
	if got := base.Wall(time.Second); !got.Equal(start.Add(time.Second)) {
		t.Errorf("wall time %v", got)
	}
	if got, want := base.Micros(time.Second), start.Add(time.Second).UnixMicro(); got != want {
		t.Errorf("micros %d, want %d", got, want)
	}
	if !base.Start().Equal(start) || base.Offset(start.Add(time.Minute)) != time.Minute {
		t.Errorf("start %v, offset of a minute later %v", base.Start(), base.Offset(start.Add(time.Minute)))
	}
}

func TestNowAndOffsetGrowWithTheMonotonicClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := timebase.New()
		time.Sleep(1234 * time.Millisecond)
		if got := base.Now(); got != 1234*time.Millisecond {
			t.Errorf("now is %v", got)
		}
		if got := base.Offset(time.Now()); got != 1234*time.Millisecond {
			t.Errorf("the offset of now is %v", got)
		}
		if got := base.Drift(); got != 0 {
			t.Errorf("a drift of %v between clocks that agree", got)
		}
	})
}

// TestTheBaseKeepsItsMonotonicReading anchors at a time that kept it: without, a stepped wall clock would bend Now.
func TestTheBaseKeepsItsMonotonicReading(t *testing.T) {
	t.Parallel()
	start := timebase.New().Start()
	if start == start.Round(0) { // Round(0) strips the reading; == compares it
		t.Error("the anchor has no monotonic reading")
	}
}

// TestDriftIsSmallOnASteadyClock cannot step the machine's clock; it holds that the two readings are taken alike.
func TestDriftIsSmallOnASteadyClock(t *testing.T) {
	t.Parallel()
	base := timebase.New()
	if drift := base.Drift(); drift < -100*time.Millisecond || drift > 100*time.Millisecond {
		t.Errorf("a drift of %v within a moment", drift)
	}
}
