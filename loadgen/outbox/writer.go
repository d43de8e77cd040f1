package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/postgres"
	"spillway/internal/timebase"
	"spillway/loadgen/publish"
)

// One order is one statement, and so one transaction and one round trip. An order that is there already, because a COMMIT
// whose answer was lost had taken place, changes nothing.
const (
	sqlWriteOrder = `
insert into orders (id, seq, instance, sku, count, placed_at) values ($1, $2, $3, $4, $5, $6) on conflict (id) do nothing`

	sqlWriteBoth = `
with written as (
    insert into orders (id, seq, instance, sku, count, placed_at) values ($1, $2, $3, $4, $5, $6) on conflict (id) do nothing
    returning id, seq, instance, placed_at
)
insert into outbox (id, seq, instance, scheduled_at, message_id, type, routing_key, correlation_id, trace_parent, body)
select id, seq, instance, placed_at, $7, $8, $9, $10, $11, $12 from written`
)

// WriterConfig is what a Writer needs.
type WriterConfig struct {
	Pool      *pgxpool.Pool // one connection for each writer
	Base      *timebase.Base
	Maker     Maker
	Run       string
	Instance  int
	Writers   int              // transactions at once
	ShedAfter time.Duration    // an arrival that could not be written for this long is given up
	CatchUp   *publish.CatchUp // nil sends late arrivals at once
	Event     bool             // write the event with the order; without, the order alone
	Observer  WriteObserver
	// Done hears of each order that is committed. It must not block, and is called from many goroutines.
	Done func(publish.Arrival)
	// GaveUp hears of each arrival that was not written: beyond ShedAfter, or at the hard stop. The same holds.
	GaveUp func(publish.Arrival)
}

// Writer writes orders as they arrive, many at once, each in a transaction of its own. Offer never blocks. Run must be
// called for anything to be written.
type Writer struct {
	cfg        WriterConfig
	backlog    backlog
	unresolved atomic.Int64
}

// NewWriter returns a writer.
func NewWriter(cfg WriterConfig) *Writer {
	return &Writer{cfg: cfg, backlog: make(backlog, maxBacklog)}
}

// Offer hands one arrival in; one that finds no room is given up at once.
func (w *Writer) Offer(a publish.Arrival) {
	if !w.backlog.offer(a) {
		w.cfg.GaveUp(a)
	}
}

// Finish says that no more arrivals come. Nobody may call Offer after it.
func (w *Writer) Finish() { close(w.backlog) }

// Unresolved returns how many orders may have been written or not: their COMMIT was not answered, and the hard stop came
// before the next try was. The tables tell.
func (w *Writer) Unresolved() int64 { return w.unresolved.Load() }

// Run writes until Finish was called and the backlog is through, or ctx, the hard stop, ends; it waits for Finish then,
// too. The error says that the database refuses orders for a reason that no later try can mend.
func (w *Writer) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	free := make(chan publish.Arrival) // unbuffered: what it takes is in a writer's hands
	for range w.cfg.Writers {
		group.Go(func() error { return w.work(ctx, free) })
	}
	group.Go(func() error {
		defer close(free)
		w.dispatch(ctx, free)
		return nil
	})
	return group.Wait()
}

// dispatch hands each arrival to the next free writer, or gives it up when none was free for too long. One goroutine does
// so for all writers, so that arrivals are given up in time also while every writer hangs.
func (w *Writer) dispatch(ctx context.Context, free chan<- publish.Arrival) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for a := range w.backlog {
		if ctx.Err() != nil || !w.cfg.CatchUp.Wait(ctx, a.Scheduled, w.cfg.Base.Now()-a.Scheduled) {
			w.cfg.GaveUp(a)
			continue
		}
		timer.Reset(a.Scheduled + w.cfg.ShedAfter - w.cfg.Base.Now())
		select {
		case free <- a:
		case <-timer.C:
			w.cfg.GaveUp(a)
		case <-ctx.Done():
			w.cfg.GaveUp(a)
		}
	}
}

// work writes what it is handed. Its error ends the other writers, and the dispatcher gives up the rest.
func (w *Writer) work(ctx context.Context, arrivals <-chan publish.Arrival) error {
	s := scratch{cfg: &w.cfg}
	for a := range arrivals {
		if err := w.write(ctx, &s, a); err != nil {
			return err
		}
	}
	return nil
}

// tryTimeout bounds one try, so that a server which is frozen and never answers costs the connection and not the writer.
const tryTimeout = 10 * time.Second

// write tries until the order is committed, is given up, or can never be written. An order whose COMMIT was not answered
// is not given up: it may be there, and the next try will find it.
func (w *Writer) write(ctx context.Context, s *scratch, a publish.Arrival) error {
	began, maybe := w.cfg.Base.Now(), false
	s.fill(a)
	for tries := 1; ; tries++ {
		err := postgres.CommitError(s.exec(ctx))
		if err == nil {
			w.cfg.Observer.Written(Written{
				Seq: a.Seq, Scheduled: a.Scheduled, Began: began, At: w.cfg.Base.Now(), Tries: tries, Warmup: a.Warmup,
			})
			w.cfg.Done(a)
			return nil
		}
		maybe = maybe || errors.Is(err, postgres.ErrCommitUnknown)
		late := w.cfg.Base.Now() > a.Scheduled+w.cfg.ShedAfter
		switch {
		case postgres.Classify(err) != postgres.Transient:
			w.giveUp(a, maybe)
			return fmt.Errorf("write order %d: %w", a.Seq, err)
		case late && !maybe, !broker.Wait(ctx, databaseBackoff.Delay(tries-1, rand.Float64())):
			w.giveUp(a, maybe)
			return nil
		}
	}
}

func (w *Writer) giveUp(a publish.Arrival, maybe bool) {
	if maybe {
		w.unresolved.Add(1)
		return
	}
	w.cfg.GaveUp(a)
}

// scratch is one writer's message and arguments, used again for each order.
type scratch struct {
	cfg     *WriterConfig
	message broker.Message
	body    []byte
	args    []any
}

// fill makes the order and its event.
func (s *scratch) fill(a publish.Arrival) {
	due := s.cfg.Base.Wall(a.Scheduled)
	identity := envelope.Identity{Run: s.cfg.Run, Instance: s.cfg.Instance, Seq: a.Seq}
	sku, count := s.cfg.Maker.Order(a.Seq)
	// The microsecond of the headers, so that the relay's are the same as those of a direct publish.
	placed := time.UnixMicro(s.cfg.Base.Micros(a.Scheduled))
	s.args = append(s.args[:0], identity.MessageID(due), a.Seq, s.cfg.Instance, sku, count, placed)
	if !s.cfg.Event {
		return
	}
	s.body = s.cfg.Maker.Make(&s.message, s.body, a.Seq, a.Scheduled, a.Scheduled)
	m := &s.message
	messageID := pgtype.Text{String: m.MessageID, Valid: m.MessageID != ""}
	s.args = append(s.args, messageID, m.Type, m.RoutingKey, m.CorrelationID, m.Headers.TraceParent, m.Body)
}

func (s *scratch) exec(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	conn, err := postgres.Acquire(ctx, s.cfg.Pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	query := sqlWriteOrder
	if s.cfg.Event {
		query = sqlWriteBoth
	}
	_, err = conn.Exec(ctx, query, s.args...)
	return err
}
