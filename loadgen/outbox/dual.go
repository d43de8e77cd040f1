package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/loadgen/publish"
)

// DualConfig is what a dual write needs.
type DualConfig struct {
	Pool      *pgxpool.Pool // one connection for each writer
	Base      *timebase.Base
	Maker     Maker
	Run       string
	Instance  int
	Writers   int
	ShedAfter time.Duration
	CatchUp   *publish.CatchUp // of DBFirst; in PublishFirst the publisher's own bound comes first and is enough
	Load      event.LoadObserver
	Observer  WriteObserver
	// Publisher makes the half that publishes, with the observer given to it in place of its own.
	Publisher func(event.LoadObserver) *publish.Publisher
	// Kill is asked for each order between its two writes; true is a process that dies there: the second write never
	// happens, and nobody knows that it is missing. nil never kills. It must be safe for concurrent use.
	Kill func(seq int64) bool
}

// DualCounts is what a dual write did, and lost.
type DualCounts struct {
	Orders int64 // orders committed
	Killed int64 // orders of which the second write never came because of Kill
	// GaveUp are second writes that were given up for other reasons: a full window, a database away too long, the hard stop.
	GaveUp int64
}

// DBFirst writes the order, commits, and then publishes: what most services do first. A process that dies between the two
// leaves an order without an event, and nothing in the database says so. Offer and Finish belong to one goroutine, Run to
// another.
type DBFirst struct {
	cfg       DualConfig
	writer    *Writer
	publisher *publish.Publisher
	toPublish backlog
	counts    dualCounters
}

type dualCounters struct{ orders, killed, gaveUp atomic.Int64 }

func (c *dualCounters) read() DualCounts {
	return DualCounts{Orders: c.orders.Load(), Killed: c.killed.Load(), GaveUp: c.gaveUp.Load()}
}

// NewDBFirst returns the dual write that commits first; Run must be called for anything to be written.
func NewDBFirst(cfg DualConfig) *DBFirst {
	d := &DBFirst{cfg: cfg, toPublish: make(backlog, maxBacklog)}
	d.writer = newDualWriter(cfg, cfg.CatchUp, d.written, func(a publish.Arrival) { cfg.Load.Shed(a.Seq, cfg.Base.Now()) })
	d.publisher = cfg.Publisher(unpublished{unarrived{cfg.Load}, &d.counts.gaveUp})
	return d
}

func newDualWriter(cfg DualConfig, catchUp *publish.CatchUp, done, gaveUp func(publish.Arrival)) *Writer {
	return NewWriter(WriterConfig{
		Pool: cfg.Pool, Base: cfg.Base, Maker: cfg.Maker, Run: cfg.Run, Instance: cfg.Instance, Writers: cfg.Writers,
		ShedAfter: cfg.ShedAfter, CatchUp: catchUp, Observer: cfg.Observer, Done: done, GaveUp: gaveUp,
	})
}

// Offer hands one arrival in. It never blocks.
func (d *DBFirst) Offer(a publish.Arrival) {
	d.cfg.Load.Arrived(event.Arrival{Seq: a.Seq, Scheduled: a.Scheduled, Warmup: a.Warmup, Bad: d.cfg.Maker.BadKind(a.Seq)})
	d.writer.Offer(a)
}

// Finish says that no more arrivals come.
func (d *DBFirst) Finish() { d.writer.Finish() }

// written goes on to the second write, unless the process dies. The event of an order that is not published counts as
// shed: it was due, and was not sent.
func (d *DBFirst) written(a publish.Arrival) {
	d.counts.orders.Add(1)
	switch {
	case d.cfg.Kill != nil && d.cfg.Kill(a.Seq):
		d.counts.killed.Add(1)
		d.cfg.Load.Shed(a.Seq, d.cfg.Base.Now())
	case !d.toPublish.offer(a):
		d.counts.gaveUp.Add(1)
		d.cfg.Load.Shed(a.Seq, d.cfg.Base.Now())
	}
}

// Run writes and publishes until every arrival has its last outcome or is shed, or ctx, the hard stop, ends.
func (d *DBFirst) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(d.toPublish)
		return d.writer.Run(ctx)
	})
	group.Go(func() error { return d.publisher.Run(ctx) })
	group.Go(func() error {
		defer d.publisher.Finish()
		for a := range d.toPublish {
			d.publisher.Offer(a)
		}
		return nil
	})
	return group.Wait()
}

// Counts returns what was written and lost so far.
func (d *DBFirst) Counts() DualCounts { return d.counts.read() }

// unpublished counts the events of written orders that the publisher sheds.
type unpublished struct {
	unarrived
	shed *atomic.Int64
}

// Shed implements event.LoadObserver.
func (u unpublished) Shed(seq int64, at time.Duration) {
	u.shed.Add(1)
	u.unarrived.Shed(seq, at)
}
