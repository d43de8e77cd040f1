package outbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"spillway/internal/postgres"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// wakes runs a notifier and a listener for the test.
func (s *stage) wakes() (*outbox.Notifier, *outbox.Listener) {
	s.Helper()
	n := outbox.NewNotifier(s.db.Pool(), s.db.Schema(), postgres.OutboxOrders)
	l := outbox.NewListener(s.db.Pool(), s.db.Schema(), postgres.OutboxOrders)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = n.Run(ctx) })
	running.Go(func() { _ = l.Run(ctx) })
	s.Cleanup(func() {
		cancel()
		running.Wait()
	})
	s.await("the listener listens", func() bool { return len(l.Wake()) == 1 })
	<-l.Wake()
	return n, l
}

// neverPoll is an interval that no test lives to see.
const neverPoll = time.Hour

func TestAWakeUpFindsARowLongBeforeThePollingWould(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	n, l := s.wakes()
	cfg := s.relayConfig()
	cfg.Poll, cfg.Wake = neverPoll, l.Wake()
	r := s.start(cfg)
	for seq := range int64(20) {
		s.write(seq, 1)
		n.Hint()
		s.await("the row is sent", func() bool { return s.unsent() == 0 })
	}
	r.stop(s)
	s.wantLying(20, 20)
}

func TestPollingFindsARowWhoseWakeUpWasLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	_, l := s.wakes()
	cfg := s.relayConfig()
	cfg.Wake = l.Wake() // and nobody hints
	r := s.start(cfg)
	s.write(0, 20)
	s.await("every row is sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
}

func TestAListenerThatLostItsConnectionWakesForWhatItMayHaveMissed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	n, l := s.wakes()
	cfg := s.relayConfig()
	cfg.Poll, cfg.Wake = neverPoll, l.Wake()
	watch, err := s.db.Pool().Acquire(t.Context()) // before the lanes: what runs on theirs would be seen in place of their last statement
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Release()
	r := s.start(cfg)
	s.await("a lane found nothing", func() (resting bool) {
		const lastWasRollback = `select exists (select from pg_stat_activity where starts_with(application_name, $1) and query = 'rollback')`
		if err := watch.QueryRow(t.Context(), lastWasRollback, s.db.Schema()+" ").Scan(&resting); err != nil {
			t.Fatal(err)
		}
		return resting
	})
	s.write(0, 1) // no hint
	s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where starts_with(application_name, $1) and query ~ '^listen'`, s.db.Schema()+" ")
	s.await("the row is sent", func() bool { return s.unsent() == 0 })
	s.write(1, 1)
	n.Hint()
	s.await("the second row is sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
}

func TestManyHintsMakeFewWakeUps(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	n, l := s.wakes()
	began := time.Now()
	for range 200_000 {
		n.Hint()
	}
	<-l.Wake()
	s.await("the last hint is sent", func() bool { return n.Sent() > 0 })
	if most := int64(time.Since(began)/(5*time.Millisecond)) + 2; n.Sent() > most {
		t.Errorf("%d wake-ups in %v, want at most %d", n.Sent(), time.Since(began), most)
	}
}

func TestASchemaHearsNothingOfAnother(t *testing.T) {
	t.Parallel()
	a, b := newStage(t), newStage(t)
	na, la := a.wakes()
	_, lb := b.wakes()
	na.Hint()
	<-la.Wake()
	if len(lb.Wake()) != 0 {
		t.Error("the other schema's listener woke up")
	}
}

func TestARowWrittenWhileEveryLaneRestsIsRelayedWithinMilliseconds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	n, l := s.wakes()
	cfg := s.writerConfig()
	cfg.Done = func(publish.Arrival) { n.Hint() }
	relay := s.relayConfig()
	relay.Poll, relay.Wake = neverPoll, l.Wake()
	r := s.start(relay)
	w := s.startWriter(cfg)
	for seq := range int64(100) {
		w.Offer(publish.Arrival{Seq: seq, Scheduled: s.base.Now()})
		s.await("the row is relayed", func() bool { return s.book.Counts().Marked > seq })
	}
	w.Finish()
	if err := w.end(s); err != nil {
		t.Fatal(err)
	}
	r.stop(s)
	if got := len(s.seen.lags); got != 100 {
		t.Errorf("%d lags", got)
	}
}
