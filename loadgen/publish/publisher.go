// Package publish takes arrivals to the broker: one Publisher is one connection with a bounded window of unsettled
// publishes. It never slows the schedule down: what cannot be sent waits here, is late, and is shed beyond a bound.
//
// Invariants: every arrival handed in ends as shed or with a last outcome; a message nacked or unknown is published again
// under the same id; the window holds one slot for each unsettled publish and no more.
package publish

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
)

// Config is what a Publisher needs.
type Config struct {
	Name      string // connection name
	Driver    broker.Driver
	Base      *timebase.Base
	Factory   *Factory
	Window    int           // slots: unsettled publishes, 1 to 1000
	ShedAfter time.Duration // an arrival that waited this long for a slot is shed
	CatchUp   *CatchUp      // what becomes of late arrivals
	Replay    Replay        // the zero value replays nothing
	Observer  event.LoadObserver
	Links     event.LinkObserver
}

// Arrival is one due message.
type Arrival struct {
	Seq       int64
	Scheduled time.Duration
	Warmup    bool
}

// Replay says which confirmed messages are published again under their id, once each, and how long after their confirm.
type Replay struct {
	Chosen func(seq int64) bool // nil chooses none
	After  time.Duration
}

// Publisher publishes the arrivals it is offered. Offer and Finish belong to one goroutine, Run to another; a closed load
// calls Fill and none of these.
type Publisher struct {
	cfg      Config
	producer *broker.Producer
	window   *window
	backlog  chan Arrival
	again    *requeue

	message broker.Message // scratch of the publishing goroutine
	body    []byte
}

// maxBacklog bounds the arrivals that wait for a slot, 24 bytes each. At 20,000/s it holds 13 s; more is shed at once.
const maxBacklog = 1 << 18

// New returns a publisher; Run must be called for anything to be sent.
func New(cfg Config) *Publisher {
	p := &Publisher{
		cfg: cfg, window: newWindow(cfg.Window), backlog: make(chan Arrival, maxBacklog), again: newRequeue(),
	}
	p.producer = broker.NewProducer(broker.ProducerConfig{
		Driver: cfg.Driver, Name: cfg.Name, Window: cfg.Window, Backoff: broker.Reconnect, Settled: p.settled,
		Flow:        flow{cfg.Links, cfg.Base},
		Reconnected: func() { cfg.Links.Reconnected("producer", cfg.Base.Now()) },
	})
	return p
}

// Offer hands one arrival in. It never blocks.
func (p *Publisher) Offer(a Arrival) {
	p.cfg.Observer.Arrived(event.Arrival{
		Seq: a.Seq, Scheduled: a.Scheduled, Warmup: a.Warmup, Bad: p.cfg.Factory.BadKind(a.Seq),
	})
	select {
	case p.backlog <- a:
	default:
		p.shed(a)
	}
}

// Finish says that no more arrivals come.
func (p *Publisher) Finish() { close(p.backlog) }

// Run publishes until every arrival has its last outcome, or ctx, the hard stop, ends: what was not sent by then is
// counted as shed, what was sent keeps the outcome it had.
func (p *Publisher) Run(ctx context.Context) error { return p.run(ctx, p.loop) }

// run keeps a connection while work, the publishing goroutine's own, goes on.
func (p *Publisher) run(ctx context.Context, work func(context.Context)) error {
	group, ctx := errgroup.WithContext(ctx)
	link, unlink := context.WithCancel(ctx)
	group.Go(func() error {
		if err := p.producer.Run(link); ctx.Err() == nil && link.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer unlink()
		work(ctx)
		// Nothing is open by now, so a connection that fails to close has cost nothing, and must not stop other publishers.
		_ = p.producer.Close(link)
		return nil
	})
	return group.Wait()
}

// loop takes whatever is next: a message to be published again before a new one.
func (p *Publisher) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for fresh := (<-chan Arrival)(p.backlog); ; {
		if ctx.Err() != nil {
			p.abandon(fresh)
			return
		}
		again, wait, ok := p.again.take()
		if ok {
			p.republish(ctx, again)
			continue
		}
		timer.Reset(sleep(wait))
		select {
		case <-ctx.Done():
		case <-p.window.drained:
			return
		case <-timer.C:
		case <-p.again.wake:
		case a, open := <-fresh:
			if !open {
				fresh = nil
				p.window.exhaust()
				continue
			}
			p.take(ctx, a)
		}
	}
}

// sleep turns "nothing waits" into a long sleep, which any event ends.
func sleep(wait time.Duration) time.Duration {
	if wait < 0 {
		return time.Minute
	}
	return wait
}

// take sends one new arrival when a slot is free, or sheds it.
func (p *Publisher) take(ctx context.Context, a Arrival) {
	if !p.cfg.CatchUp.Wait(ctx, a.Scheduled, p.cfg.Base.Now()-a.Scheduled) {
		p.shed(a)
		return
	}
	i, ok := p.slot(ctx, a.Scheduled+p.cfg.ShedAfter-p.cfg.Base.Now())
	if !ok {
		p.shed(a)
		return
	}
	p.window.begin(i, a)
	p.send(ctx, i)
}

// slot takes a free slot, waiting at most for the given time.
func (p *Publisher) slot(ctx context.Context, wait time.Duration) (int, bool) {
	if i, ok := p.window.take(); ok {
		return i, true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-p.window.freed:
		case <-timer.C:
			return 0, false
		case <-ctx.Done():
			return 0, false
		}
		if i, ok := p.window.take(); ok {
			return i, true
		}
	}
}

// send publishes the message of a slot. When the producer has stopped, the outcome is Unknown, as for any publish whose
// answer will not come.
func (p *Publisher) send(ctx context.Context, i int) { p.sendAt(ctx, i, p.cfg.Base.Now()) }

// sendAt is send with the instant that counts as the sending's.
func (p *Publisher) sendAt(ctx context.Context, i int, now time.Duration) {
	s := &p.window.slots[i]
	s.sent = now
	s.tries++
	a, sent, again := s.arrival, s.sent, s.tries > 1
	p.body = p.cfg.Factory.Make(&p.message, p.body, a.Seq, a.Scheduled, sent)
	// The event precedes the write: once written, the confirm may overtake it.
	p.cfg.Observer.Sent(event.Sent{Seq: a.Seq, Scheduled: a.Scheduled, At: sent, Republish: again, Warmup: a.Warmup})
	if err := p.producer.Publish(ctx, uint64(i), &p.message); err != nil {
		p.settled([]broker.Settlement{{Token: uint64(i), Outcome: broker.Unknown, At: time.Now(), Reason: err.Error()}})
	}
}

func (p *Publisher) republish(ctx context.Context, s slot) {
	i, ok := p.slot(ctx, maxRepublishWait)
	if !ok {
		p.again.add(s, 0) // the window is stuck; the message keeps its place
		return
	}
	p.window.slots[i] = s
	p.send(ctx, i)
}

// maxRepublishWait bounds how long one message to be published again may hold up new ones while the window is full.
const maxRepublishWait = time.Second

// settled hears the outcomes of publishes, from the driver's goroutine.
func (p *Publisher) settled(answers []broker.Settlement) {
	finals := 0
	for i := range answers {
		if p.settle(&answers[i]) {
			finals++
		}
	}
	p.window.release(answers, finals)
}

// settle notes one outcome, and reports whether it is the message's last.
func (p *Publisher) settle(e *broker.Settlement) (final bool) {
	s := p.window.slots[e.Token]
	final, wait := p.last(&s, e.Outcome)
	p.cfg.Observer.Settled(event.Settled{
		Seq: s.arrival.Seq, Scheduled: s.arrival.Scheduled, Sent: s.sent, At: p.cfg.Base.Offset(e.At), Outcome: e.Outcome,
		Warmup: s.arrival.Warmup, Final: final, Replay: s.replay,
	})
	if !final {
		s.replay = s.replay || e.Outcome == broker.Confirmed
		p.again.add(s, wait)
	}
	return final
}

// last reports whether an outcome is the message's last, and otherwise how long it waits to be published again.
func (p *Publisher) last(s *slot, o broker.Outcome) (final bool, wait time.Duration) {
	switch {
	case o == broker.Returned:
		return true, 0
	case o != broker.Confirmed:
		return false, republishDelay(s.tries)
	case s.replay || p.cfg.Replay.Chosen == nil || !p.cfg.Replay.Chosen(s.arrival.Seq):
		return true, 0
	default:
		return false, p.cfg.Replay.After
	}
}

func (p *Publisher) shed(a Arrival) { p.cfg.Observer.Shed(a.Seq, p.cfg.Base.Now()) }

// abandon sheds what was never sent, and waits for the arrivals still to come, which Offer's side ends soon.
func (p *Publisher) abandon(fresh <-chan Arrival) {
	if fresh == nil {
		return
	}
	for a := range fresh {
		p.shed(a)
	}
}

// flow turns the driver's back pressure into link events.
type flow struct {
	links event.LinkObserver
	base  *timebase.Base
}

// Blocked implements broker.Flow.
func (f flow) Blocked(blocked bool, _ string, at time.Time) {
	f.links.Blocked("producer", blocked, f.base.Offset(at))
}
