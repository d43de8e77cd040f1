package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrivingEndsWithItsItemsOrItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int) (int, error) {
			time.Sleep(10 * time.Millisecond)
			return 3, nil
		}
		d, err := drive(t.Context(), 2, make([]int, 10), time.Minute, slow)
		if err != nil || d.count != 30 || d.elapsed != 50*time.Millisecond || d.perSecond() != 600 {
			t.Errorf("%+v, %v; want 30 done in 50ms", d, err)
		}
		d, err = drive(t.Context(), 2, make([]int, 1000), 25*time.Millisecond, slow)
		if err != nil || d.count != 18 || d.elapsed != 30*time.Millisecond {
			t.Errorf("%+v, %v; want what was begun within 25ms: 18 in 30ms", d, err)
		}
	})
}

func TestDrivingEndsWithTheFirstErrorAndWithItsContext(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var calls atomic.Int64
	_, err := drive(t.Context(), 1, make([]int, 100), time.Minute, func(context.Context, int) (int, error) {
		if calls.Add(1) == 3 {
			return 0, broken
		}
		return 1, nil
	})
	if !errors.Is(err, broken) || calls.Load() != 3 {
		t.Errorf("%v after %d calls, want the error after 3", err, calls.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drive(ctx, 1, make([]int, 3), time.Minute, func(context.Context, int) (int, error) { return 1, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before it began it says %v", err)
	}
}

func TestPairsGoInTheOrderABBA(t *testing.T) {
	t.Parallel()
	order := ""
	s := func(name string, rate float64) side {
		return side{name, func(context.Context) (measurement, error) {
			order += name
			return measurement{PerSecond: rate, Count: 1000, CPUSeconds: 2 / rate}, nil
		}}
	}
	e := newEnv(options{pairs: 3}, nil)
	e.progress.out = &discard{}
	pairs, err := e.pairs(t.Context(), "test", s("A", 200), s("B", 100))
	if err != nil || order != "ABBAAB" {
		t.Fatalf("order %s, %v", order, err)
	}
	r := target{Unit: "x", Bound: new(1.9)}.ratioRow(pairs, perSecondOf, perSecond)
	if r.Value != exactly(2) || r.Ours != "200/s" || r.Against != "100/s" || r.Verdict != undecided {
		t.Errorf("row %+v", r)
	}
	if got := ratio(pairs, measurement.cpuPerMessage); got != exactly(0.5) {
		t.Errorf("ratio of costs %v", got)
	}
	if _, err := e.pairs(t.Context(), "test", s("A", 200), s("B", 0)); !errors.Is(err, errNothingDone) {
		t.Errorf("a side that did nothing gives %v", err)
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
