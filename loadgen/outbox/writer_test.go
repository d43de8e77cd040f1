package outbox_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// writing is a writer that runs in the background.
type writing struct {
	*outbox.Writer
	done chan error
}

func (s *stage) startWriter(cfg outbox.WriterConfig) *writing {
	w := &writing{outbox.NewWriter(cfg), make(chan error, 1)}
	go func() { w.done <- w.Run(s.context()) }()
	return w
}

// end waits for the writer's end.
func (w *writing) end(s *stage) error {
	s.Helper()
	select {
	case err := <-w.done:
		return err
	case <-time.After(patience):
		s.Fatal("the writer did not end")
		return nil
	}
}

// count returns a number from the database.
func (s *stage) count(query string, args ...any) (n int64) {
	s.Helper()
	if err := s.db.Pool().QueryRow(s.context(), query, args...).Scan(&n); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return n
}

// lockOrders keeps every writer from writing until the release, which may be called twice.
func (s *stage) lockOrders() (release func()) {
	s.Helper()
	tx, err := s.db.Pool().Begin(s.context())
	if err != nil {
		s.Fatal(err)
	}
	if _, err := tx.Exec(s.context(), `lock table orders in access exclusive mode`); err != nil {
		s.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.Background()) }
	s.Cleanup(release)
	return release
}

// blocked returns how many backends of the test wait for a lock.
func (s *stage) blocked() int64 {
	s.Helper()
	return s.count(`select count(*) from pg_stat_activity where starts_with(application_name, $1) and wait_event_type = 'Lock'`,
		s.db.Schema()+" ")
}

func TestOrderAndEventAreWrittenTogetherAndOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 500
	s.write(0, n)
	s.write(0, n) // the same orders again, as after a COMMIT whose answer was lost
	if got := s.count(`select count(*) from orders o join outbox e using (id, seq, instance) where o.placed_at = e.scheduled_at and sku like 'SKU-%' and count between 1 and 3`); got != n {
		t.Errorf("%d orders with their events, want %d", got, n)
	}
	if orders, events := s.count(`select count(*) from orders`), s.count(`select count(*) from outbox`); orders != n || events != n {
		t.Errorf("%d orders and %d events, want %d of each", orders, events, n)
	}
	if len(s.seen.written) != n || len(s.seen.shed) != 0 {
		t.Errorf("%d written and %d shed were announced", len(s.seen.written), len(s.seen.shed))
	}
}

func TestOneOrderIsOneTransaction(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 200
	s.write(0, n)
	if got := s.count(`select count(distinct o.xmin::text) from orders o`); got != n {
		t.Errorf("%d transactions for %d orders", got, n)
	}
	if got := s.count(`select count(*) from orders o join outbox e using (id) where o.xmin = e.xmin`); got != n {
		t.Errorf("%d orders share the transaction of their event, want %d", got, n)
	}
}

func TestArrivalsAreShedInTimeAlsoWhileEveryWriterHangs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	release := s.lockOrders()
	cfg := s.writerConfig()
	cfg.Writers, cfg.ShedAfter = 2, 50*time.Millisecond
	w := s.startWriter(cfg)
	const n = 100
	for seq := range int64(n) {
		w.Offer(publish.Arrival{Seq: seq, Scheduled: s.base.Now()})
	}
	s.await("all but those in the writers' hands are shed", func() bool { return s.seen.sheds() == n-2 })
	release()
	w.Finish()
	if err := w.end(s); err != nil {
		t.Fatal(err)
	}
	if got := s.count(`select count(*) from orders`); got != 2 || len(s.seen.written) != 2 || s.seen.sheds() != n-2 {
		t.Errorf("%d orders, %d announced as written, %d shed", got, len(s.seen.written), s.seen.sheds())
	}
}

func TestAnUnansweredCommitIsTriedUntilItIsKnown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	release := s.lockOrders()
	cfg := s.writerConfig()
	cfg.Writers, cfg.ShedAfter = 4, time.Millisecond // so late that giving up would be due
	w := s.startWriter(cfg)
	taken := s.base.Now() + time.Hour // handed to a writer in any case
	for seq := range int64(4) {
		w.Offer(publish.Arrival{Seq: seq, Scheduled: taken - time.Hour + 2*time.Second})
	}
	w.Finish()
	s.await("four writers wait for the table", func() bool { return s.blocked() == 4 })
	s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where starts_with(application_name, $1) and wait_event_type = 'Lock'`, s.db.Schema()+" ")
	release()
	if err := w.end(s); err != nil {
		t.Fatal(err)
	}
	if orders, events := s.count(`select count(*) from orders`), s.count(`select count(*) from outbox`); orders != 4 || events != 4 {
		t.Errorf("%d orders and %d events, want 4 of each", orders, events)
	}
	if len(s.seen.written) != 4 || s.seen.sheds() != 0 || w.Unresolved() != 0 {
		t.Errorf("%d announced as written, %d shed, %d unresolved", len(s.seen.written), s.seen.sheds(), w.Unresolved())
	}
}

func TestADatabaseThatWillNeverTakeOrdersEndsTheWriter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(`drop table outbox`)
	w := s.startWriter(s.writerConfig())
	const n = 50
	for seq := range int64(n) {
		w.Offer(publish.Arrival{Seq: seq, Scheduled: s.base.Now()})
	}
	w.Finish()
	if err := w.end(s); err == nil {
		t.Error("the writer ended without an error")
	}
	// The first refusal cuts the other writers off: what one of them had sent by then is not known to be refused.
	if shed, open := int64(s.seen.sheds()), w.Unresolved(); shed+open != n || shed == 0 {
		t.Errorf("%d shed and %d unresolved, want %d together", shed, open, n)
	}
	if orders := s.count(`select count(*) from orders`); orders != 0 {
		t.Errorf("%d orders without a table for their events", orders)
	}
}

// TestTheRelayedMessageIsTheOneOfADirectPublish compares what comes out of the queue with what the factory makes, for good
// messages and for each kind of spoilt one.
func TestTheRelayedMessageIsTheOneOfADirectPublish(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, kind := range []string{publish.BadJSON, publish.MissingField, publish.UnknownSchema, publish.EmptyID} {
		s.factory.Bad = append(s.factory.Bad, publish.Bad{Kind: kind, Share: 0.2})
	}
	const n = 100
	var at atomic.Int64 // the same due instant for all, so that the test can make the message again
	at.Store(int64(s.base.Now()))
	w := outbox.NewWriter(s.writerConfig())
	for seq := range int64(n) {
		w.Offer(publish.Arrival{Seq: seq, Scheduled: time.Duration(at.Load())})
	}
	w.Finish()
	if err := w.Run(s.context()); err != nil {
		t.Fatal(err)
	}
	s.relayUntilSent()
	consumer, err := s.broker.Driver.OpenConsumer(s.context(), "test", broker.ConsumerOptions{Queue: s.broker.Plan.Work, Tag: "t", Prefetch: n})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = consumer.Close(s.context()) }()
	for left := n; left > 0; {
		batch := <-consumer.Deliveries()
		for _, d := range batch {
			s.compare(d, time.Duration(at.Load()))
		}
		left -= len(batch)
	}
}

func (s *stage) compare(d *broker.Delivery, scheduled time.Duration) {
	s.Helper()
	var want broker.Message
	s.factory.Make(&want, nil, d.Headers.Seq, scheduled, 0)
	sent := d.Headers.SentAt
	d.Headers.SentAt, want.Headers.SentAt = 0, 0
	if d.Headers != want.Headers {
		s.Errorf("headers are %+v, want %+v", d.Headers, want.Headers)
	}
	if sent < want.Headers.ScheduledAt {
		s.Errorf("sent at %d, before %d, when it was due", sent, want.Headers.ScheduledAt)
	}
	got := [...]string{d.MessageID, d.CorrelationID, d.Type, d.ContentType, d.Exchange, d.RoutingKey}
	if want := [...]string{want.MessageID, want.CorrelationID, want.Type, want.ContentType, want.Exchange, want.RoutingKey}; got != want {
		s.Errorf("properties are %q, want %q", got, want)
	}
	if !d.Timestamp.Equal(want.Timestamp.Truncate(time.Second)) || !bytes.Equal(d.Body, want.Body) {
		s.Errorf("message %d: timestamp %v, want %v; body\n%s\nwant\n%s", d.Headers.Seq, d.Timestamp, want.Timestamp, d.Body, want.Body)
	}
}

func (s *seen) sheds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shed)
}
