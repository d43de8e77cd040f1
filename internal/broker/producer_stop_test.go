package broker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/broker"
)

func TestTheHardStopAbortsTheSocketAndReleasesABlockedPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := supervise(ctx, newScript())
		e := <-p.script.opened
		e.set(func(e *epoch) { e.keep = true })
		if err := p.Publish(t.Context(), 1, &broker.Message{}); err != nil {
			t.Fatal(err)
		}
		e.set(func(e *epoch) { e.block = true })
		blocked := make(chan error, 1)
		go func() { blocked <- p.Publish(t.Context(), 2, &broker.Message{}) }()
		synctest.Wait()
		stop()
		if err := <-p.ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if !e.aborted.Load() {
			t.Error("the socket was not closed by force")
		}
		if got := p.outcomes(1); !slices.Equal(got, []broker.Outcome{broker.Unknown}) {
			t.Errorf("the open publish is settled as %v by the time Run has returned", got)
		}
		if err := <-blocked; err != nil {
			t.Errorf("the blocked publish returned %v", err)
		}
		if got := p.outcomes(2); !slices.Equal(got, []broker.Outcome{broker.Unknown}) {
			t.Errorf("the blocked publish is settled as %v", got)
		}
		if err := p.Publish(t.Context(), 3, &broker.Message{}); !errors.Is(err, broker.ErrProducerStopped) {
			t.Errorf("a publish after the stop: %v", err)
		}
	})
}

func TestTheHardStopEndsTheWaitForABroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.setAway(true)
		ctx, stop := context.WithCancel(t.Context())
		p := supervise(ctx, s)
		waiting := make(chan error, 1)
		go func() { waiting <- p.Publish(t.Context(), 1, &broker.Message{}) }()
		time.Sleep(time.Second)
		stop()
		if err := <-p.ended; !errors.Is(err, errRefused) {
			t.Errorf("Run ended with %v, want why it never connected", err)
		}
		if err := <-waiting; !errors.Is(err, broker.ErrProducerStopped) {
			t.Errorf("the publish that waited returned %v", err)
		}
	})
}

func TestCloseIsOrderly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		e := <-p.script.opened
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-p.ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if !e.closed.Load() || e.aborted.Load() {
			t.Errorf("closed %v, aborted %v; want an orderly close", e.closed.Load(), e.aborted.Load())
		}
		if n := len(p.script.tried()); n != 1 {
			t.Errorf("%d connections, want no new one after Close", n)
		}
		if err := p.Publish(t.Context(), 3, &broker.Message{}); !errors.Is(err, broker.ErrProducerStopped) {
			t.Errorf("a publish after Close: %v", err)
		}
	})
}

// TestCloseEndsRunAlsoWithoutABroker holds the stop of a run whose broker is away: Run must not go on until it is back,
// nor a publish wait for it.
func TestCloseEndsRunAlsoWithoutABroker(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(*script){
		"the connection is refused": func(s *script) { s.away = true },
		"the connection hangs":      func(s *script) { s.hang = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				how(s)
				p := supervise(t.Context(), s)
				waiting := make(chan error, 1)
				go func() { waiting <- p.Publish(t.Context(), 1, &broker.Message{}) }()
				time.Sleep(time.Second)
				closedAt := time.Now()
				if err := p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-p.ended; err != nil {
					t.Errorf("Run ended with %v", err)
				}
				if err := <-waiting; !errors.Is(err, broker.ErrProducerStopped) {
					t.Errorf("the publish that waited returned %v", err)
				}
				if took := time.Since(closedAt); took != 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestCloseBeforeRunLetsRunReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		p := broker.NewProducer(broker.ProducerConfig{Driver: s, Backoff: backoff})
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context()); err != nil {
			t.Errorf("Run returned %v", err)
		}
		select {
		case e := <-s.opened:
			if _, open := <-e.Done(); open {
				t.Error("an epoch was left open")
			}
		default:
		}
	})
}
