package publish

import (
	"context"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// Fill publishes without a schedule, in place of Run: whenever a slot is free the next message of the supply goes out, so
// the window is always full. Nothing waits, so nothing is late or shed; a latency counts from the moment of sending and
// hides what a slow broker kept from being sent. When the supply has ended it returns as Run does.
func (p *Publisher) Fill(ctx context.Context, s *Supply) error {
	return p.run(ctx, func(ctx context.Context) {
		if broker.Wait(ctx, s.start-p.cfg.Base.Now()) {
			p.fill(ctx, s)
		}
		p.Finish()
		p.loop(ctx) // what is open by now comes to its last outcome as in any other load
	})
}

// fill sends until the supply or ctx ends. What has to be published again goes first.
func (p *Publisher) fill(ctx context.Context, s *Supply) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		again, wait, ok := p.again.take()
		if ok {
			p.republish(ctx, again)
			continue
		}
		i, ok := p.window.take()
		if !ok {
			timer.Reset(sleep(wait))
			if i, ok = p.awaitSlot(ctx, s, timer); !ok {
				continue
			}
		}
		if !p.next(ctx, i, s) {
			return
		}
	}
}

// awaitSlot waits for a slot, or for anything else that the loop has to look at. The end of the supply counts as a slot
// that nobody will use: next finds that there is no more.
func (p *Publisher) awaitSlot(ctx context.Context, s *Supply, timer *time.Timer) (int, bool) {
	select {
	case <-p.window.freed:
	case <-s.Ended():
		return noSlot, true
	case <-p.again.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	return 0, false
}

// noSlot stands for the slot that the end of a supply did not wait for.
const noSlot = -1

// next sends the next message in a slot. It reports false, and gives the slot back, when there is none.
func (p *Publisher) next(ctx context.Context, i int, s *Supply) bool {
	a, more := s.Next()
	if !more {
		if i != noSlot {
			p.window.giveBack(i)
		}
		return false
	}
	p.cfg.Observer.Arrived(event.Arrival{Seq: a.Seq, Scheduled: a.Scheduled, Warmup: a.Warmup, Bad: p.cfg.Factory.BadKind(a.Seq)})
	p.window.begin(i, a)
	p.sendAt(ctx, i, a.Scheduled)
	return true
}
