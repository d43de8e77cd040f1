package broker_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/broker"
)

func TestABackoffDoublesFromMinToMaxAndIsDrawnFromTheUpperHalf(t *testing.T) {
	t.Parallel()
	b := broker.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for name, row := range map[string]struct {
		backoff broker.Backoff
		n       int
		draw    float64
		want    time.Duration
	}{
		"the first try, least draw":             {b, 0, 0, 50 * time.Millisecond},
		"the first try, half draw":              {b, 0, 0.5, 75 * time.Millisecond},
		"the second doubles":                    {b, 1, 0, 100 * time.Millisecond},
		"the fourth doubles thrice":             {b, 3, 0, 400 * time.Millisecond},
		"the fifth meets the maximum":           {b, 4, 0, 500 * time.Millisecond},
		"the maximum holds":                     {b, 20, 0, 500 * time.Millisecond},
		"a shift beyond the word":               {b, 64, 0, 500 * time.Millisecond},
		"very many tries":                       {b, math.MaxInt32, 0, 500 * time.Millisecond},
		"a long minimum does not overflow":      {broker.Backoff{Min: time.Hour, Max: 24 * time.Hour}, 31, 0, 12 * time.Hour},
		"a minimum above the maximum is capped": {broker.Backoff{Min: time.Hour, Max: time.Minute}, 0, 0, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := row.backoff.Delay(row.n, row.draw); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestWaitEndsWithTheTimeOrTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !broker.Wait(t.Context(), time.Second) || time.Since(began) != time.Second {
			t.Errorf("a wait of 1s took %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if broker.Wait(ctx, time.Hour) || time.Since(began) != time.Second {
			t.Errorf("a wait that the context ended after 1s took %v", time.Since(began))
		}
		for range 100 { // both ready: the end of the context wins
			if broker.Wait(ctx, 0) {
				t.Fatal("a wait under an ended context reported true")
			}
		}
	})
}
