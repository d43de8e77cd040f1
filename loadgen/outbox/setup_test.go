package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/internal/timebase"
	"spillway/internal/topology"
	"spillway/loadgen/draw"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

const run = "test-run"

// patience bounds every wait of a test.
const patience = rabbittest.Patience

// stage is one test's broker and database, with what it observed.
type stage struct {
	*testing.T
	broker  *rabbittest.Broker
	db      *postgres.DB
	base    *timebase.Base
	factory *publish.Factory
	book    *outbox.Book
	seen    *seen
}

// newStage makes a virtual host with the topology and a schema with the tables.
func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOn(t, nil)
}

// newStageOn is newStage with a topology of the test's own.
func newStageOn(t *testing.T, change func(*topology.Settings)) *stage {
	t.Helper()
	s := &stage{
		T: t, broker: rabbittest.New(t, change), db: postgrestest.NewSized(t, postgres.Settings{SKUs: 3, InitialStock: 100}, 24),
		base: timebase.New(), book: outbox.NewBook(), seen: newSeen(),
	}
	s.factory = &publish.Factory{
		Base: s.base, Run: run, Seed: 1, Exchange: s.broker.Plan.Orders, Size: draw.Fixed(512), CountMin: 1, CountMax: 3,
		SKUs: []string{postgres.SKU(0), postgres.SKU(1), postgres.SKU(2)},
	}
	return s
}

// relayConfig is a relay on the orders' outbox, which nothing wakes.
func (s *stage) relayConfig() outbox.RelayConfig {
	return outbox.RelayConfig{
		Name: "relay", Driver: s.broker.Driver, Pool: s.db.Pool(), Source: outbox.Orders(s.broker.Plan.Orders, run), Book: s.book,
		Base: s.base, Window: 256, Batch: 50, Lanes: 2, Poll: 10 * time.Millisecond, Hold: 20 * time.Second,
		Load: s.seen, Observer: s.seen, Links: event.NopLinks{},
	}
}

func (s *stage) writerConfig() outbox.WriterConfig {
	return outbox.WriterConfig{
		Pool: s.db.Pool(), Base: s.base, Maker: s.factory, Run: run, Writers: 8, ShedAfter: time.Hour, Event: true, Observer: s.seen,
		Done:   func(publish.Arrival) {},
		GaveUp: func(a publish.Arrival) { s.seen.Shed(a.Seq, 0) },
	}
}

// write writes orders first to first + n - 1, with their events. An order is due at the same instant each time it is written.
func (s *stage) write(first, n int64) {
	s.Helper()
	w := outbox.NewWriter(s.writerConfig())
	for seq := first; seq < first+n; seq++ {
		w.Offer(publish.Arrival{Seq: seq, Scheduled: time.Duration(seq) * time.Microsecond})
	}
	w.Finish()
	if err := w.Run(s.context()); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) context() context.Context { return rabbittest.Context(s) }

// relaying is a relay that runs in the background.
type relaying struct {
	*outbox.Relay
	done chan error
}

func (s *stage) start(cfg outbox.RelayConfig) *relaying {
	r := &relaying{outbox.NewRelay(cfg), make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.done <- r.Run(ctx)
	}()
	s.Cleanup(func() {
		cancel()
		<-finished
	})
	return r
}

// end waits until the relay ended by itself, or ends it.
func (r *relaying) end(s *stage) error {
	s.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		s.Fatal("the relay did not end")
		return nil
	}
}

// stop ends the relay in an orderly way.
func (r *relaying) stop(s *stage) {
	s.Helper()
	r.Stop()
	if err := r.end(s); err != nil {
		s.Fatalf("the relay ended with %v", err)
	}
}

func (s *stage) await(what string, condition func() bool) {
	s.Helper()
	rabbittest.Eventually(s, what, condition)
}

// unsent returns how many rows are not marked.
func (s *stage) unsent() int64 {
	s.Helper()
	n, err := s.db.OutboxPending(s.context(), postgres.OutboxOrders)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// relayUntilSent runs a relay until every row is marked, and stops it.
func (s *stage) relayUntilSent() {
	s.Helper()
	r := s.start(s.relayConfig())
	s.await("every row is marked sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
}

// lying returns how often each sequence lies in the work queue, and fails for one of another run.
func (s *stage) lying() map[int64]int {
	s.Helper()
	found := map[int64]int{}
	for _, l := range s.broker.Lying(s, s.broker.Plan.Work) {
		if l.Run != run {
			s.Errorf("message %d carries run %q", l.Seq, l.Run)
		}
		found[l.Seq]++
	}
	return found
}

// wantLying fails unless the queue holds every sequence from 0 to n-1 at least once, and copies messages in all.
func (s *stage) wantLying(n, copies int64) {
	s.Helper()
	found, sum := s.lying(), int64(0)
	for seq := range n {
		if found[seq] == 0 {
			s.Errorf("message %d was skipped", seq)
		}
		sum += int64(found[seq])
	}
	if int64(len(found)) != n || sum != copies {
		s.Errorf("the queue holds %d ids in %d messages, want %d in %d", len(found), sum, n, copies)
	}
}

func (s *stage) exec(query string, args ...any) {
	s.Helper()
	if _, err := s.db.Pool().Exec(s.context(), query, args...); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
}

// seen keeps what was announced.
type seen struct {
	event.NopLinks

	mu       sync.Mutex
	arrived  map[int64]int
	shed     map[int64]int
	first    map[int64]int // sends that are not marked as republished
	again    map[int64]int
	outcomes map[int64][]broker.Outcome
	finals   map[int64]int
	written  map[int64]int
	lags     []time.Duration
	batches  []int
	repeated int // confirms told as duplicates
	warmups  int
}

func newSeen() *seen {
	return &seen{
		arrived: map[int64]int{}, shed: map[int64]int{}, first: map[int64]int{}, again: map[int64]int{},
		outcomes: map[int64][]broker.Outcome{}, finals: map[int64]int{}, written: map[int64]int{},
	}
}

func (s *seen) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *seen) Arrived(e event.Arrival)         { s.note(func() { s.arrived[e.Seq]++ }) }
func (s *seen) Shed(seq int64, _ time.Duration) { s.note(func() { s.shed[seq]++ }) }
func (s *seen) Written(e outbox.Written)        { s.note(func() { s.written[e.Seq]++ }) }

func (s *seen) Claimed(_ string, rows int, _ time.Duration) {
	s.note(func() { s.batches = append(s.batches, rows) })
}

func (s *seen) Sent(e event.Sent) {
	s.note(func() {
		if e.Republish {
			s.again[e.Seq]++
			return
		}
		s.first[e.Seq]++
	})
}

func (s *seen) Settled(e event.Settled) {
	s.note(func() {
		s.outcomes[e.Seq] = append(s.outcomes[e.Seq], e.Outcome)
		if e.Final {
			s.finals[e.Seq]++
		}
		if e.Warmup {
			s.warmups++
		}
	})
}

func (s *seen) Relayed(e outbox.Relayed) {
	s.note(func() {
		s.lags = append(s.lags, e.Lag)
		if e.Duplicate {
			s.repeated++
		}
	})
}

// countdown lets a relay die the n-th time it comes to a point.
func countdown(at outbox.Point, n int64) func(outbox.Point) bool {
	var left atomic.Int64
	left.Store(n)
	return func(p outbox.Point) bool { return p == at && left.Add(-1) == 0 }
}

func name(p outbox.Point) string {
	return fmt.Sprintf("point %d", p)
}
