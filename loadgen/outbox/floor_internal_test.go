package outbox

import (
	"testing"
	"time"
)

func TestASweepComesAgainHoweverMuchIsFoundAboveTheFloor(t *testing.T) {
	t.Parallel()
	var f floor
	start := time.Unix(1_800_000_000, 0)
	rows := []row{{due: start.Add(2 * time.Second)}, {due: start.Add(time.Second)}}
	sweeps := 0
	for elapsed := time.Duration(0); elapsed < 10*sweepEvery; elapsed += sweepEvery / 10 {
		from, sweep := f.next(start.Add(elapsed))
		if sweep {
			sweeps++
		}
		if sweep != from.IsZero() || (!sweep && !from.Equal(start.Add(time.Second))) {
			t.Fatalf("after %v a claim starts at %v, sweep %t", elapsed, from, sweep)
		}
		if f.saw(sweep, rows) {
			t.Fatal("a claim that found rows asks for another at once")
		}
	}
	if sweeps != 10 {
		t.Errorf("%d sweeps in ten intervals", sweeps)
	}
}

func TestNobodyRestsOnAnEmptyClaimFromTheFloor(t *testing.T) {
	t.Parallel()
	var f floor
	now := time.Unix(1_800_000_000, 0)
	if _, sweep := f.next(now); !sweep {
		t.Fatal("the first claim is no sweep")
	}
	if f.saw(true, nil) {
		t.Error("an empty sweep asks for another at once")
	}
	if _, sweep := f.next(now); sweep {
		t.Fatal("a sweep follows another at once")
	}
	if !f.saw(false, nil) {
		t.Error("an empty claim from the floor does not ask for a sweep")
	}
	if _, sweep := f.next(now); !sweep {
		t.Error("the sweep that was asked for did not come")
	}
}
