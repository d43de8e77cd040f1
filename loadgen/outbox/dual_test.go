package outbox_test

import (
	"testing"

	"spillway/internal/event"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

func (s *stage) dualConfig(kill func(int64) bool) outbox.DualConfig {
	return outbox.DualConfig{
		Pool: s.db.Pool(), Base: s.base, Maker: s.factory, Run: run, Writers: 8, ShedAfter: patience, Load: s.seen, Observer: s.seen,
		Kill: kill,
		Publisher: func(o event.LoadObserver) *publish.Publisher {
			return publish.New(publish.Config{
				Name: "dual", Driver: s.broker.Driver, Base: s.base, Factory: s.factory, Window: 100, ShedAfter: patience,
				Observer: o, Links: event.NopLinks{},
			})
		},
	}
}

// gap returns the orders without an event in the queue, and the events in the queue without an order.
func (s *stage) gap() (orders, events map[int64]bool) {
	s.Helper()
	orders, events = map[int64]bool{}, map[int64]bool{}
	if err := s.db.Orders(s.context(), func(seq int64, _ int) error {
		orders[seq] = true
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	for seq := range s.lying() {
		if orders[seq] {
			delete(orders, seq)
			continue
		}
		events[seq] = true
	}
	return orders, events
}

// dieForEveryTenth is a process that dies between the two writes of every tenth order.
func dieForEveryTenth(seq int64) bool { return seq%10 == 0 }

func TestCommittingFirstLosesTheEventsOfOrdersThatDiedInBetween(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := outbox.NewDBFirst(s.dualConfig(dieForEveryTenth))
	const n = 500
	s.offer(d, n)
	orders, events := s.gap()
	if len(orders) != n/10 || len(events) != 0 {
		t.Errorf("%d orders without an event and %d events without an order, want %d and 0", len(orders), len(events), n/10)
	}
	for seq := range orders {
		if seq%10 != 0 {
			t.Errorf("order %d lost its event without a death", seq)
		}
	}
	if c := d.Counts(); c != (outbox.DualCounts{Orders: n, Killed: n / 10}) {
		t.Errorf("counted %+v", c)
	}
	s.wantAnnounced(n, n/10)
}

func TestPublishingFirstLeavesEventsOfOrdersThatDoNotExist(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := outbox.NewPublishFirst(s.dualConfig(dieForEveryTenth))
	const n = 500
	s.offer(d, n)
	orders, events := s.gap()
	if len(orders) != 0 || len(events) != n/10 {
		t.Errorf("%d orders without an event and %d events without an order, want 0 and %d", len(orders), len(events), n/10)
	}
	if c := d.Counts(); c != (outbox.DualCounts{Orders: n - n/10, Killed: n / 10}) {
		t.Errorf("counted %+v", c)
	}
	s.wantAnnounced(n, 0)
}

func TestWithoutDeathsBothDualWritesAreWhole(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(outbox.DualConfig) sink{
		"the order first": func(c outbox.DualConfig) sink { return outbox.NewDBFirst(c) },
		"the event first": func(c outbox.DualConfig) sink { return outbox.NewPublishFirst(c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			const n = 300
			s.offer(build(s.dualConfig(nil)), n)
			if orders, events := s.gap(); len(orders) != 0 || len(events) != 0 {
				t.Errorf("%d orders without an event and %d events without an order", len(orders), len(events))
			}
			s.wantAnnounced(n, 0)
		})
	}
}

// wantAnnounced fails unless each of n arrivals was announced once, and the rest but those shed has one final outcome.
func (s *stage) wantAnnounced(n, shed int64) {
	s.Helper()
	if a, sh, f := total(s.seen.arrived), total(s.seen.shed), total(s.seen.finals); a != n || sh != shed || f != n-shed {
		s.Errorf("%d arrivals, %d shed, %d final outcomes; want %d, %d, %d", a, sh, f, n, shed, n-shed)
	}
}
