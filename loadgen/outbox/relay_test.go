package outbox_test

import (
	"errors"
	"testing"

	"spillway/internal/broker"
	"spillway/loadgen/outbox"
)

func TestEveryRowEndsConfirmedAndMarked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 1000
	s.write(0, n)
	s.relayUntilSent()
	s.wantLying(n, n)
	c := s.book.Counts()
	if c.Published != n || c.Confirmed != n || c.Marked != n || c.Republished != 0 || c.Claimed != n || c.Claims < n/50 {
		t.Errorf("counted %+v", c)
	}
	for seq := range int64(n) {
		if got := s.seen.outcomes[seq]; len(got) != 1 || got[0] != broker.Confirmed || s.seen.finals[seq] != 1 || s.seen.first[seq] != 1 {
			t.Fatalf("message %d: outcomes %v, %d final, %d first sends", seq, got, s.seen.finals[seq], s.seen.first[seq])
		}
	}
	if len(s.seen.lags) != n {
		t.Errorf("%d lags", len(s.seen.lags))
	}
	for _, lag := range s.seen.lags {
		if lag <= 0 || lag > patience {
			t.Fatalf("a lag of %v", lag)
		}
	}
}

func TestARelayThatDiesAtAnyPointSkipsNothing(t *testing.T) {
	t.Parallel()
	for _, at := range []outbox.Point{outbox.AfterClaim, outbox.AfterPublish, outbox.AfterConfirm, outbox.AfterMark} {
		t.Run(name(at), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			const n, deaths = 1600, 8 // more rows than are marked before the last death
			s.write(0, n)
			for i := range int64(deaths) {
				cfg := s.relayConfig()
				cfg.Kill = countdown(at, 1+i%3)
				if err := s.start(cfg).end(s); !errors.Is(err, outbox.ErrKilled) {
					t.Fatalf("death %d: the relay ended with %v", i, err)
				}
			}
			before := s.book.Counts()
			s.relayUntilSent()
			c := s.book.Counts()
			t.Logf("%+v", c)
			found := s.lying()
			copies := int64(0)
			for seq := range int64(n) {
				if found[seq] == 0 {
					t.Errorf("message %d was skipped", seq)
				}
				copies += int64(found[seq])
			}
			if copies < c.Confirmed || copies > c.Published {
				t.Errorf("the queue holds %d copies; %d publishes, %d of them confirmed", copies, c.Published, c.Confirmed)
			}
			if c.Overlaps != 0 {
				t.Errorf("%d rows were published by two relays at a time", c.Overlaps)
			}
			if c.Confirmed < n || c.Confirmed > n+c.Duplicates {
				t.Errorf("%d confirms of %d rows, with %d duplicates", c.Confirmed, n, c.Duplicates)
			}
			if at == outbox.AfterConfirm && (c.Duplicates == 0 || before.Marked == 0 && before.Confirmed == 0) {
				t.Errorf("no duplicate after deaths between confirm and mark: %+v", c)
			}
		})
	}
}
