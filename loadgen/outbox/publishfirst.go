package outbox

import (
	"context"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/loadgen/publish"
)

// PublishFirst publishes, awaits the confirm, and then writes the order. A process that dies between the two leaves an
// event about an order that does not exist, and other services act on it. Offer and Finish belong to one goroutine, Run to
// another.
type PublishFirst struct {
	cfg       DualConfig
	writer    *Writer
	publisher *publish.Publisher
	counts    dualCounters
}

// NewPublishFirst returns the dual write that publishes first; Run must be called for anything to be written.
func NewPublishFirst(cfg DualConfig) *PublishFirst {
	d := &PublishFirst{cfg: cfg}
	d.writer = newDualWriter(cfg, nil, func(publish.Arrival) { d.counts.orders.Add(1) }, func(publish.Arrival) { d.counts.gaveUp.Add(1) })
	d.publisher = cfg.Publisher(confirmed{cfg.Load, d.confirmed})
	return d
}

// Offer hands one arrival in. It never blocks.
func (d *PublishFirst) Offer(a publish.Arrival) { d.publisher.Offer(a) }

// Finish says that no more arrivals come.
func (d *PublishFirst) Finish() { d.publisher.Finish() }

// confirmed goes on to the second write, unless the process dies.
func (d *PublishFirst) confirmed(a publish.Arrival) {
	if d.cfg.Kill != nil && d.cfg.Kill(a.Seq) {
		d.counts.killed.Add(1)
		return
	}
	d.writer.Offer(a)
}

// Run publishes and writes until every arrival has its last outcome and every order is written or given up, or ctx, the
// hard stop, ends.
func (d *PublishFirst) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer d.writer.Finish()
		return d.publisher.Run(ctx)
	})
	group.Go(func() error { return d.writer.Run(ctx) })
	return group.Wait()
}

// Counts returns what was written and lost so far.
func (d *PublishFirst) Counts() DualCounts { return d.counts.read() }

// confirmed passes load events on and hands over what was confirmed. A message is confirmed once at most: after its confirm
// the publisher is through with it.
type confirmed struct {
	event.LoadObserver
	next func(publish.Arrival)
}

// Settled implements event.LoadObserver.
func (c confirmed) Settled(e event.Settled) {
	c.LoadObserver.Settled(e)
	if e.Outcome == broker.Confirmed {
		c.next(publish.Arrival{Seq: e.Seq, Scheduled: e.Scheduled, Warmup: e.Warmup})
	}
}
