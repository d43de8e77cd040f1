package loadgen

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/timebase"
)

func TestThePacerSleepsUntilTheDueInstantAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := timebase.New()
		p := newPacer(base, nil, nil)
		defer p.close()
		for _, due := range []time.Duration{time.Second, time.Second, 1500 * time.Millisecond, time.Millisecond, 2 * time.Second} {
			before := base.Now()
			if !p.until(t.Context(), due) {
				t.Fatal("the offering did not end")
			}
			if got, want := base.Now(), max(before, due); got != want {
				t.Errorf("due at %v, woken at %v, want %v", due, got, want)
			}
		}
	})
}

func TestAStopEndsTheSleepAndLetsNoPastInstantThrough(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(stop chan struct{}, cancel context.CancelFunc){
		"the gentle stop": func(stop chan struct{}, _ context.CancelFunc) { close(stop) },
		"the hard stop":   func(_ chan struct{}, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				base, stopped := timebase.New(), make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := newPacer(base, stopped, nil)
				defer p.close()
				time.AfterFunc(time.Second, func() { end(stopped, cancel) })
				if p.until(ctx, time.Hour) || base.Now() != time.Second {
					t.Errorf("woken at %v, want false at 1s", base.Now())
				}
				if p.until(ctx, 0) {
					t.Error("an instant that is past went through after the stop")
				}
			})
		})
	}
}

func TestTheAlarmEndsASleepOnTime(t *testing.T) {
	t.Parallel()
	alarm := NewAlarm()
	if alarm == nil {
		t.Skip("this kernel has no alarm to give")
	}
	base := timebase.New()
	p := newPacer(base, nil, alarm)
	for i := range 50 {
		due := base.Now() + time.Duration(1+i%5)*time.Millisecond
		if !p.until(t.Context(), due) || base.Now() < due {
			t.Fatalf("due at %v, woken at %v", due, base.Now())
		}
	}
	p.close()
	if alarm.Sleep(time.Hour) {
		t.Error("a closed alarm says that it slept")
	}
}
