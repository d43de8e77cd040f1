package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/timebase"
	"spillway/loadgen/publish"
)

// Config is what a Sink needs.
type Config struct {
	// Pool gives the connections that Connections counts. Its search_path is the run's schema.
	Pool        *pgxpool.Pool
	Schema      string
	Driver      broker.Driver
	Base        *timebase.Base
	Maker       Maker
	Exchange    string
	Run         string
	Instance    int
	Writers     int // transactions at once
	Relays      int // each with a connection to the broker
	Lanes       int // claims at once of one relay
	Batch       int // most rows of a claim
	Window      int // unsettled publishes of one relay
	Poll        time.Duration
	Hold        time.Duration
	ShedAfter   time.Duration // an arrival that could not be written for this long is shed
	MeasureFrom time.Duration // offset at which warm-up ends
	CatchUp     *publish.CatchUp
	Load        event.LoadObserver
	Links       event.LinkObserver
	Observer    interface {
		RelayObserver
		WriteObserver
	}
	Kill func(Point) bool // see RelayConfig
}

// Connections returns how many connections to the database a Sink with these settings takes at most: one for each writer
// and lane, one each to send and to hear wake-ups, and one for the drain.
func Connections(writers, relays, lanes int) int { return writers + relays*lanes + 3 }

// RelayConnections returns how many connections to the database relays by themselves take at most: one for each lane, and one
// for the drain.
func RelayConnections(relays, lanes int) int { return relays*lanes + 1 }

// Sink takes arrivals to the broker by way of the outbox. Offer and Finish belong to one goroutine, Run to another.
type Sink struct {
	cfg      Config
	book     *Book
	writer   *Writer
	relays   *Relays
	notifier *Notifier
	listener *Listener
}

// New returns a sink; Run must be called for anything to be written.
func New(cfg Config) *Sink {
	s := &Sink{
		cfg: cfg, book: NewBook(), notifier: NewNotifier(cfg.Pool, cfg.Schema, postgres.OutboxOrders),
		listener: NewListener(cfg.Pool, cfg.Schema, postgres.OutboxOrders),
	}
	s.writer = NewWriter(WriterConfig{
		Pool: cfg.Pool, Base: cfg.Base, Maker: cfg.Maker, Run: cfg.Run, Instance: cfg.Instance, Writers: cfg.Writers,
		ShedAfter: cfg.ShedAfter, CatchUp: cfg.CatchUp, Event: true, Observer: cfg.Observer,
		Done:   func(publish.Arrival) { s.notifier.Hint() },
		GaveUp: func(a publish.Arrival) { cfg.Load.Shed(a.Seq, cfg.Base.Now()) },
	})
	s.relays = NewRelays(RelayConfig{
		Name: "spillway-relay", Driver: cfg.Driver, Pool: cfg.Pool, Source: Orders(cfg.Exchange, cfg.Run), Book: s.book,
		Base: cfg.Base, MeasureFrom: cfg.MeasureFrom, Window: cfg.Window, Batch: cfg.Batch, Lanes: cfg.Lanes, Poll: cfg.Poll,
		Hold: cfg.Hold, Wake: s.listener.Wake(), Load: cfg.Load, Observer: cfg.Observer, Links: cfg.Links, Kill: cfg.Kill,
	}, cfg.Relays)
	return s
}

// Offer hands one arrival in. It never blocks.
func (s *Sink) Offer(a publish.Arrival) {
	s.cfg.Load.Arrived(event.Arrival{Seq: a.Seq, Scheduled: a.Scheduled, Warmup: a.Warmup, Bad: s.cfg.Maker.BadKind(a.Seq)})
	s.writer.Offer(a)
}

// Finish says that no more arrivals come.
func (s *Sink) Finish() { s.writer.Finish() }

// Run writes and relays until every arrival is shed or written, and every row is confirmed or was last returned; or until
// ctx, the hard stop, ends: what was not written by then is shed, and what was not relayed stays unsent in the table. The
// error says that the database refuses orders for a reason that no later try can mend.
func (s *Sink) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	wakes, quiet := context.WithCancel(ctx)
	group.Go(func() error { return s.notifier.Run(wakes) })
	group.Go(func() error { return s.listener.Run(wakes) })
	group.Go(func() error { return s.relays.Run(ctx) })
	group.Go(func() error {
		defer quiet()
		defer s.relays.Stop()
		err := s.writer.Run(ctx)
		if err == nil {
			s.relays.Drain(ctx)
		}
		return err
	})
	return group.Wait()
}

// Counts returns what the relays did so far.
func (s *Sink) Counts() Counts { return s.book.Counts() }

// Kills returns how many relays died and were replaced.
func (s *Sink) Kills() int64 { return s.relays.Kills() }

// Unresolved returns how many orders may have been written or not; see Writer.Unresolved. It is 0 after an orderly end.
func (s *Sink) Unresolved() int64 { return s.writer.Unresolved() }
