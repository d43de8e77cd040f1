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

func TestAPublishIsSettledByItsEpoch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		if err := p.Publish(t.Context(), 1, &broker.Message{}); err != nil {
			t.Fatal(err)
		}
		if got := p.outcomes(1); !slices.Equal(got, []broker.Outcome{broker.Confirmed}) {
			t.Errorf("settled as %v", got)
		}
		if e := <-p.script.opened; e.window != 7 {
			t.Errorf("the window is %d, want 7", e.window)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-p.ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if n := p.reconnected.Load(); n != 0 {
			t.Errorf("%d reconnects were counted without one", n)
		}
	})
}

func TestTheProducerReconnectsAndCountsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		first := <-p.script.opened
		first.set(func(e *epoch) { e.keep = true })
		for token := range uint64(3) {
			if err := p.Publish(t.Context(), token, &broker.Message{}); err != nil {
				t.Fatal(err)
			}
		}
		first.end()
		second := <-p.script.opened
		if err := p.Publish(t.Context(), 3, &broker.Message{}); err != nil {
			t.Fatal(err)
		}
		for token := range uint64(3) {
			if got := p.outcomes(token); !slices.Equal(got, []broker.Outcome{broker.Unknown}) {
				t.Errorf("publish %d, open as the epoch ended, is settled as %v", token, got)
			}
		}
		if got := p.outcomes(3); !slices.Equal(got, []broker.Outcome{broker.Confirmed}) || !slices.Equal(second.wrote, []uint64{3}) {
			t.Errorf("the publish after is settled as %v, the second epoch wrote %v", got, second.wrote)
		}
		if n := p.reconnected.Load(); n != 1 {
			t.Errorf("%d reconnects, want 1", n)
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestAConnectionThatIsRefusedIsTriedAgainWithGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.setAway(true)
		p := supervise(t.Context(), s)
		time.Sleep(10 * time.Second)
		s.setAway(false)
		<-s.opened
		tries := s.tried()
		for i := 1; i < len(tries)-1; i++ {
			full := min(backoff.Max, backoff.Min<<(i-1))
			if wait := tries[i].Sub(tries[i-1]); wait < full/2 || wait > full {
				t.Errorf("wait %d is %v, want %v to %v", i, wait, full/2, full)
			}
		}
		if len(tries) < 12 || len(tries) > 27 {
			t.Errorf("%d tries in 10 s", len(tries))
		}
		if n := p.reconnected.Load(); n != 0 {
			t.Errorf("%d reconnects were counted before the first connection", n)
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestTheBackoffBeginsAnewAfterAnEpoch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.setAway(true)
		p := supervise(t.Context(), s)
		time.Sleep(5 * time.Second)
		s.setAway(false)
		e := <-s.opened
		s.setAway(true)
		before := len(s.tried())
		e.end()
		time.Sleep(backoff.Min)
		synctest.Wait()
		if n := len(s.tried()) - before; n < 2 {
			t.Errorf("%d tries within the least wait after the loss, want the second of them", n)
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestAPublishThatFailsIsUnknownExactlyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		e := <-p.script.opened
		e.set(func(e *epoch) { e.refuse = true })
		if err := p.Publish(t.Context(), 5, &broker.Message{}); err != nil {
			t.Fatalf("Publish returned %v, and the settlement says %v: the caller would settle twice", err, p.outcomes(5))
		}
		if got := p.outcomes(5); !slices.Equal(got, []broker.Outcome{broker.Unknown}) {
			t.Errorf("settled as %v, want unknown once", got)
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestAPublishWaitsForAnEpoch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.setAway(true)
		p := supervise(t.Context(), s)
		published := make(chan error, 1)
		go func() { published <- p.Publish(t.Context(), 1, &broker.Message{}) }()
		time.Sleep(3 * time.Second)
		if len(published) != 0 {
			t.Fatal("Publish returned without a connection")
		}
		s.setAway(false)
		if err := <-published; err != nil {
			t.Errorf("Publish returned %v", err)
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestAnEpochThatIsOverIsNotOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		p := supervise(t.Context(), s)
		e := <-s.opened
		s.setAway(true)
		e.end()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Publish(ctx, 1, &broker.Message{}); !errors.Is(err, context.DeadlineExceeded) || len(p.outcomes(1)) != 0 {
			t.Errorf("Publish returned %v and settled %v; want a wait for the next epoch", err, p.outcomes(1))
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestAWriteThatBlocksEndsWithItsContextAndCostsTheEpoch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		e := <-p.script.opened
		e.set(func(e *epoch) { e.block = true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := p.Publish(ctx, 1, &broker.Message{}); err != nil {
			t.Errorf("Publish returned %v", err)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the write was given up after %v, want 1s", took)
		}
		if got := p.outcomes(1); !slices.Equal(got, []broker.Outcome{broker.Unknown}) {
			t.Errorf("settled as %v", got)
		}
		<-p.script.opened
		if err := p.Publish(t.Context(), 2, &broker.Message{}); err != nil || len(p.outcomes(2)) != 1 {
			t.Errorf("the next publish: %v, settled as %v", err, p.outcomes(2))
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestUnderAnEndedContextNothingIsWrittenAndNoEpochIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		e := <-p.script.opened
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for token := range uint64(100) {
			if err := p.Publish(ctx, token, &broker.Message{}); !errors.Is(err, context.Canceled) {
				t.Fatalf("Publish returned %v", err)
			}
		}
		synctest.Wait()
		if len(e.wrote) != 0 || e.aborted.Load() {
			t.Errorf("wrote %v, aborted %v", e.wrote, e.aborted.Load())
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestWaitingForAnEpochEndsWithTheContextAndSettlesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.setAway(true)
		p := supervise(t.Context(), s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// Two: one waits for the epoch, the other for its turn behind it.
		results := make(chan error, 2)
		for token := range uint64(2) {
			go func() { results <- p.Publish(ctx, token, &broker.Message{}) }()
		}
		for range 2 {
			if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Publish returned %v", err)
			}
		}
		if got := append(p.outcomes(0), p.outcomes(1)...); len(got) != 0 {
			t.Errorf("nothing was written, and it was settled as %v", got)
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestOneWriterAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := supervise(t.Context(), newScript())
		e := <-p.script.opened
		done := make(chan error, 20)
		for token := range uint64(20) {
			go func() { done <- p.Publish(t.Context(), token, &broker.Message{}) }()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if e.most != 1 || len(e.wrote) != 20 {
			t.Errorf("%d writers at once, %d writes", e.most, len(e.wrote))
		}
		_ = p.Close(t.Context())
		<-p.ended
	})
}

func TestEveryOutcomeHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	want := []string{"confirmed", "returned", "nacked", "unknown"}
	for i, o := range broker.Outcomes {
		if o.String() != want[i] {
			t.Errorf("outcome %d is called %q, want %q", i, o, want[i])
		}
	}
	if got := broker.Outcome(0).String(); got != "none" {
		t.Errorf("the zero outcome is called %q", got)
	}
}
