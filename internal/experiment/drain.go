package experiment

import (
	"context"
	"time"

	"spillway/internal/ledger"
)

const (
	// drainPoll is how often the backlog is looked at.
	drainPoll = 100 * time.Millisecond
	// drainStill is how long the queues must be empty and nothing move before a backlog that the ledger still sees is
	// taken for gone: messages may be lost, and then nothing will ever settle them. It is longer than a dead letter needs
	// from an expired tier to the work queue.
	drainStill = 3 * time.Second
)

// drain waits until everything offered is settled, for as long as the profile allows.
func (r *run) drain(ctx context.Context) {
	start := r.offeredUntil
	defer func() { r.phases = append(r.phases, phase{PhaseDrain, start, r.base.Now()}) }()
	ctx, cancel := context.WithTimeout(ctx, r.o.Profile.Drain.Timeout)
	defer cancel()
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	still := stillness{since: r.base.Now()}
	for {
		v := r.ledger.View(r.base.Now())
		if v.Backlog+v.Held+v.Pending+v.RetryDebt == 0 {
			r.drained = true
			return
		}
		if still.moved(r.ledger.Counts(), r.base.Now()) >= drainStill && v.Held+v.RetryDebt == 0 && r.queuesEmpty(ctx) {
			r.say("drain: the queues are empty, but %d messages are not settled", v.Backlog+v.Pending)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			r.say("drain: not done after %v: %d in the work queue, %d held, %d in tiers, %d unconfirmed",
				r.o.Profile.Drain.Timeout, v.Backlog, v.Held, v.RetryDebt, v.Pending)
			return
		}
	}
}

// stillness tells for how long nothing has moved.
type stillness struct {
	since     time.Duration
	delivered int64
	settled   int64
}

func (s *stillness) moved(c ledger.Counts, now time.Duration) time.Duration {
	settled := c.Acked + c.Confirmed + c.Retried
	if c.Delivered != s.delivered || settled != s.settled {
		*s = stillness{since: now, delivered: c.Delivered, settled: settled}
	}
	return now - s.since
}

// queuesEmpty reports whether the broker has nothing ready in the work queue or any tier.
func (r *run) queuesEmpty(ctx context.Context) bool {
	ready, err := r.readyDepths(ctx)
	if err != nil {
		return false
	}
	delete(ready, r.plan.Parking)
	delete(ready, r.plan.EventsQueue)
	for _, n := range ready {
		if n > 0 {
			return false
		}
	}
	return true
}
