package workers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/timebase"
	"spillway/workers/breaker"
)

type states struct{ seen []string }

func (s *states) BreakerChanged(state string, _ time.Duration) { s.seen = append(s.seen, state) }

func openGate(t *testing.T, s breaker.Settings) (*gate, *states) {
	t.Helper()
	seen := &states{}
	g := newGate(timebase.New(), seen, nil, breaker.New(s))
	for range s.MinSamples {
		p, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.report(false)
	}
	return g, seen
}

var settings = breaker.Settings{FailureRatio: 0.5, Window: 5 * time.Second, MinSamples: 4, OpenFor: time.Second, Probes: 2}

func TestNoHandlerStartsWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := openGate(t, settings)
		var started atomic.Int64
		for range 10 {
			go func() {
				p, err := g.enter(t.Context())
				if err == nil {
					started.Add(1)
					p.report(false)
				}
			}()
		}
		time.Sleep(settings.OpenFor - time.Millisecond)
		synctest.Wait()
		if n := started.Load(); n != 0 {
			t.Fatalf("%d handlers started while the breaker was open", n)
		}
	})
}

func TestExactlyTheProbesStartWhileHalfOpenAndSuccessLetsAllThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, seen := openGate(t, settings)
		started, finish := make(chan pass, 10), make(chan struct{})
		for range 10 {
			go func() {
				p, err := g.enter(t.Context())
				if err != nil {
					return
				}
				started <- p
				<-finish
				p.report(true)
			}()
		}
		time.Sleep(settings.OpenFor + time.Millisecond)
		synctest.Wait()
		if n := len(started); n != settings.Probes {
			t.Fatalf("%d handlers at work while half-open, want the %d probes", n, settings.Probes)
		}
		close(finish)
		synctest.Wait()
		if n := len(started); n != 10 {
			t.Fatalf("%d started after the probes succeeded, want all 10", n)
		}
		if want := []string{"open", "half-open", "closed"}; !equal(seen.seen, want) {
			t.Fatalf("states %v, want %v", seen.seen, want)
		}
	})
}

func TestAWithdrawnProbeGivesItsPlaceToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := settings
		one.Probes = 1
		g, _ := openGate(t, one)
		time.Sleep(one.OpenFor)
		first, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan error, 1)
		go func() {
			_, err := g.enter(t.Context())
			entered <- err
		}()
		synctest.Wait()
		if len(entered) != 0 {
			t.Fatal("a second probe started beside the first")
		}
		first.withdraw()
		synctest.Wait()
		if len(entered) != 1 {
			t.Fatal("the place of the withdrawn probe was not taken")
		}
	})
}

func TestNobodyEntersForAChannelThatHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := settings
		one.Probes = 1
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, g := range map[string]*gate{
			"no breaker":       newGate(timebase.New(), &states{}, nil, nil),
			"a closed breaker": newGate(timebase.New(), &states{}, nil, breaker.New(one)),
		} {
			if _, err := g.enter(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: enter returned %v", name, err)
			}
		}
	})
}

func TestWaitingAtTheGateEndsWithTheChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := openGate(t, settings)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := g.enter(ctx)
			result <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Fatalf("enter returned %v, want context.Canceled", err)
		}
	})
}

func TestTheRateLimitSpacesStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(timebase.New(), &states{}, limiter(100), nil)
		began := time.Now()
		for range 51 {
			if _, err := g.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 499*time.Millisecond || took > 501*time.Millisecond {
			t.Fatalf("51 starts at 100 a second took %v, want 500ms", took)
		}
	})
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
