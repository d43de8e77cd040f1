package outbox_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/topology"
	"spillway/loadgen/outbox"
)

func TestRelaysSideBySideNeverPublishARowTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 2000
	s.write(0, n)
	cfg := s.relayConfig()
	cfg.Batch = 20
	relays := []*relaying{s.start(cfg), s.start(cfg), s.start(cfg)}
	s.await("every row is marked sent", func() bool { return s.unsent() == 0 })
	for _, r := range relays {
		r.stop(s)
	}
	if c := s.book.Counts(); c.Published != n || c.Overlaps != 0 || c.Republished != 0 || c.Marked != n {
		t.Errorf("counted %+v", c)
	}
	s.wantLying(n, n)
}

func TestARowThatIsCommittedLateIsNotSkipped(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(0, 1) // a row to copy
	r := s.start(s.relayConfig())
	s.await("the first row is sent", func() bool { return s.unsent() == 0 })
	late, err := s.db.Pool().Begin(s.context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(context.Background()) }()
	if _, err := late.Exec(s.context(), `
insert into outbox (id, seq, instance, message_id, type, routing_key, correlation_id, trace_parent, scheduled_at, body)
select gen_random_uuid(), 1, instance, gen_random_uuid(), type, routing_key, correlation_id, trace_parent, scheduled_at, body
  from outbox`); err != nil {
		t.Fatal(err)
	}
	s.write(2, 498)
	s.await("what was written later is sent", func() bool { return s.unsent() == 0 })
	if err := late.Commit(s.context()); err != nil {
		t.Fatal(err)
	}
	s.await("the late row is sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
	s.wantLying(500, 500)
}

func TestAReturnedRowIsNeverMarkedAndGoesOutOnceItIsRoutable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 20
	s.write(0, n)
	cfg := s.relayConfig()
	cfg.Source = outbox.Orders(s.broker.Plan.DeadLetter, run) // nothing is bound there for order.created
	r := s.start(cfg)
	s.await("every row was returned three times", func() bool { return s.book.Counts().Returned >= 3*n })
	c := s.book.Counts()
	if c.Confirmed != 0 || c.Marked != 0 || s.unsent() != n {
		t.Errorf("counted %+v with %d unsent", c, s.unsent())
	}
	if got := s.book.Unroutable(); got != n {
		t.Errorf("%d rows are called unroutable, want %d", got, n)
	}
	s.broker.Tamper(t, func(ch *amqp.Channel) error {
		return ch.QueueBind(s.broker.Plan.Work, "order.created", s.broker.Plan.DeadLetter, false, nil)
	})
	s.await("every row is marked sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
	s.wantLying(n, n)
	c = s.book.Counts()
	if c.Confirmed != n || c.Marked != n || c.Duplicates != 0 || c.Republished != c.Returned || s.book.Unroutable() != 0 {
		t.Errorf("counted %+v", c)
	}
	for seq := range int64(n) {
		outcomes := s.seen.outcomes[seq]
		if last := outcomes[len(outcomes)-1]; last != broker.Confirmed || s.seen.finals[seq] != 1 || s.seen.first[seq] != 1 {
			t.Fatalf("message %d ended %v with %d final outcomes and %d first sends", seq, outcomes, s.seen.finals[seq], s.seen.first[seq])
		}
	}
}

func TestANackedRowIsPublishedAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	s := newStageOn(t, func(set *topology.Settings) { set.MaxLength = 10 })
	const n = 60
	s.write(0, n)
	cfg := s.relayConfig()
	cfg.Batch, cfg.Window = 5, 2 // so slow that the queue's limit is seen
	r := s.start(cfg)
	s.await("the queue refuses", func() bool { return s.book.Counts().Nacked > 0 })
	found := map[int64]int{}
	s.await("every row is marked sent", func() bool {
		s.take(found)
		return s.unsent() == 0
	})
	r.stop(s)
	s.take(found)
	if len(found) != n {
		t.Errorf("%d of %d messages came", len(found), n)
	}
	if c := s.book.Counts(); c.Marked != n || c.Confirmed != n || c.Republished != c.Nacked {
		t.Errorf("counted %+v", c)
	}
}

func TestAConnectionCutAgainAndAgainSkipsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	proxy := s.broker.Proxy(t)
	const n = 3000
	s.write(0, n)
	cfg := s.relayConfig()
	cfg.Driver = proxy.Driver
	r := s.start(cfg)
	for cut := int64(1); cut <= 5; cut++ {
		s.await("some more are confirmed", func() bool { return s.book.Counts().Confirmed > cut*300 })
		proxy.Cut()
	}
	s.await("every row is marked sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
	c := s.book.Counts()
	t.Logf("%+v", c)
	if c.Unknown == 0 || c.Overlaps != 0 || c.Marked != n || c.Confirmed != n || c.Republished != c.Unknown {
		t.Errorf("counted %+v", c)
	}
	found := s.lying()
	for seq := range int64(n) {
		if found[seq] == 0 {
			t.Errorf("message %d was skipped", seq)
		}
	}
}

func TestAClaimIsLetGoWhenTheBrokerDoesNotRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	proxy := s.broker.Proxy(t)
	const n = 100
	s.write(0, n)
	cfg := s.relayConfig()
	cfg.Driver, cfg.Hold, cfg.Batch = proxy.Driver, 300*time.Millisecond, n
	cfg.Kill = func(at outbox.Point) bool { // the claim stands, nothing is published: now the broker stops reading
		if at == outbox.AfterClaim {
			proxy.Stall(true)
		}
		return false
	}
	r := s.start(cfg)
	s.await("the publishes are given up", func() bool { return s.book.Counts().Unknown > 0 })
	s.await("no row is locked", func() bool {
		var free int64
		const query = `select count(*) from (select from outbox where sent_at is null for update skip locked) s`
		if err := s.db.Pool().QueryRow(s.context(), query).Scan(&free); err != nil {
			t.Fatal(err)
		}
		return free == n
	})
	r.Stop() // while it tries to connect
	if err := r.end(s); err != nil {
		t.Errorf("the relay ended with %v", err)
	}
	proxy.Stall(false)
	s.relayUntilSent()
	if c := s.book.Counts(); c.Marked != n || c.Overlaps != 0 {
		t.Errorf("counted %+v", c)
	}
}

func TestMarksAreWrittenAlsoWhenTheClaimsTransactionIsGone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 40
	s.write(0, n)
	cfg := s.relayConfig()
	cfg.Lanes, cfg.Batch = 1, n
	terminated := false
	cfg.Kill = func(at outbox.Point) bool { // one lane, one goroutine
		if at == outbox.AfterConfirm && !terminated {
			terminated = true
			s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where starts_with(application_name, $1) and state = 'idle in transaction'`,
				s.db.Schema()+" ")
		}
		return false
	}
	r := s.start(cfg)
	s.await("every row is marked sent", func() bool { return s.unsent() == 0 })
	r.stop(s)
	if c := s.book.Counts(); c.LostClaims != 1 || c.Published != n || c.Marked != n {
		t.Errorf("counted %+v, want one lost claim and no second publish", c)
	}
	s.wantLying(n, n)
}

func TestWhatIsConfirmedIsMarkedAlsoAfterAHardStop(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write(0, 3000)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- outbox.NewRelay(s.relayConfig()).Run(ctx) }()
	s.await("some are confirmed", func() bool { return s.book.Counts().Confirmed > 200 })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the relay ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the relay did not end")
	}
	if c := s.book.Counts(); c.Marked != c.Confirmed || c.Confirmed == 0 || c.Confirmed == 3000 {
		t.Errorf("counted %+v", c)
	}
}

// take consumes and acks what lies in the work queue.
func (s *stage) take(into map[int64]int) {
	s.Helper()
	consumer, err := s.broker.Driver.OpenConsumer(s.context(), "test", broker.ConsumerOptions{
		Queue: s.broker.Plan.Work, Tag: "test", Prefetch: 100,
	})
	if err != nil {
		s.Fatal(err)
	}
	for quiet := false; !quiet; {
		select {
		case batch := <-consumer.Deliveries():
			for _, d := range batch {
				into[d.Headers.Seq]++
				if err := consumer.Ack(d.Tag, false); err != nil {
					s.Fatal(err)
				}
			}
		case <-time.After(50 * time.Millisecond):
			quiet = true
		}
	}
	if err := consumer.Close(rabbittest.Context(s)); err != nil {
		s.Fatal(err)
	}
}
