package workers_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/event"
	"spillway/workers/service"
)

func TestAMessageIsAppliedOnceAndAcked(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	const n = 500
	b.publish(b.messages(n)...)
	b.eventually("all are acked", acked, n)
	b.stop()
	b.wantReady(b.Plan.Work, 0)
	b.wantEffects(n)
	if got := b.log.results(event.Applied); got != n || b.log.read(acked) != n || b.log.read(func(l *log) int { return len(l.delivered) }) != n {
		t.Errorf("%d applied, %d acked, want %d of each, delivered once", got, b.log.read(acked), n)
	}
	if b.log.read(parked)+b.log.read(retried)+b.log.released != 0 {
		t.Errorf("%d parked, %d retried, %d released; want none", b.log.read(parked), b.log.read(retried), b.log.released)
	}
}

func TestADuplicateDeliveryIsAbsorbedAndAcked(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	const n = 100
	all := b.messages(n)
	b.publish(all...)
	b.publish(all...)
	b.eventually("all are acked", acked, 2*n)
	b.stop()
	b.wantReady(b.Plan.Work, 0)
	b.wantEffects(n)
	if applied, duplicates := b.log.results(event.Applied), b.log.results(event.Duplicate); applied != n || duplicates != n {
		t.Errorf("%d applied, %d duplicates; want %d of each", applied, duplicates, n)
	}
}

func TestARefusalIsAResultAndNotAFailure(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.initial = 3 })
	b.publish(b.messages(5)...)
	b.eventually("all are acked", acked, 5)
	b.stop()
	b.wantEffects(5)
	if applied, refused := b.log.results(event.Applied), b.log.results(event.Refused); applied != 3 || refused != 2 {
		t.Errorf("%d applied, %d refused; want 3 and 2", applied, refused)
	}
	if rows, err := b.db.OutboxRows(rabbittest.Context(t)); err != nil || rows != 2 {
		t.Errorf("%d outgoing events, %v; want one for each refusal", rows, err)
	}
}

func TestTimesOfAHandlerAreItsOwn(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) {
		o.ServiceTime = fixed(t, 30*time.Millisecond)
		o.MeasureFrom = time.Hour
	})
	m := b.message(0)
	b.publish(m)
	b.eventually("it is handled", func(l *log) int { return len(l.handled) }, 1)
	h := b.log.handled[0]
	if h.Seq != 0 || h.Attempt != 1 || !h.Warmup || h.Scheduled != b.base.FromMicros(m.Headers.ScheduledAt) || h.SentAt != b.base.FromMicros(m.Headers.SentAt) {
		t.Errorf("handled %+v", h)
	}
	d := b.log.delivered[0]
	if h.Finished-h.Started < 30*time.Millisecond || d.At > h.Started || d.Attempt != 1 || d.Redelivered || d.HasDelayError {
		t.Errorf("delivered %+v, handled %+v; want 30ms of service after the delivery", d, h)
	}
}

// fixed is a service time.
func fixed(t *testing.T, d time.Duration) service.Time {
	t.Helper()
	s, err := service.NewTime(service.Fixed, d, 0, 0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestThePartialAckBatchIsFlushedByTheTimer and the next hold case 5: acks that wait for a full batch for ever.
func TestThePartialAckBatchIsFlushedByTheTimer(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.Workers, o.AckBatch, o.AckInterval = 1, 20, 50*time.Millisecond })
	b.publish(b.messages(3)...)
	b.eventually("three acks of a batch of twenty", acked, 3)
}

func TestThePartialAckBatchIsFlushedAtTheStop(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.Workers, o.AckBatch, o.AckInterval = 1, 20, time.Hour })
	b.publish(b.messages(23)...)
	b.eventually("all are applied", func(l *log) int { return len(l.handled) }, 23)
	b.stop()
	if got := b.log.read(acked); got != 23 {
		t.Errorf("%d acked, want 23", got)
	}
	b.wantReady(b.Plan.Work, 0)
}

// TestAFullBatchIsAckedWithoutTheTimer keeps the timer out of the way.
func TestAFullBatchIsAckedWithoutTheTimer(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.Workers, o.Concurrency, o.AckBatch, o.AckInterval = 1, 1, 5, time.Hour })
	b.publish(b.messages(50)...) // more than the prefetch: without acks they would not all come
	b.eventually("all batches are acked", acked, 50)
}

// TestASlowHeadOfLineDoesNotHoldUpTheAcksBehindIt has one handler blocked on a row, and the rest go on.
func TestASlowHeadOfLineDoesNotHoldUpTheAcksBehindIt(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.Workers, o.Concurrency, o.HandlerTimeout = 1, 2, time.Hour })
	release := b.lockClaim(0)
	b.publish(b.messages(60)...) // three times the prefetch
	b.eventually("all but the first are acked", acked, 59)
	release()
	b.eventually("the first is acked", acked, 60)
	b.stop()
	b.wantEffects(60)
}

// lockClaim makes the handler of one message wait: its id is claimed by a transaction that is open. The release gives the
// claim back.
func (b *bench) lockClaim(seq int64) (release func()) {
	b.Helper()
	ctx := rabbittest.Context(b)
	tx, err := b.db.Pool().Begin(ctx)
	if err != nil {
		b.Fatal(err)
	}
	released := false
	release = func() {
		if !released {
			released = true
			_ = tx.Rollback(ctx)
		}
	}
	b.Cleanup(release)
	if _, err := tx.Exec(ctx, `insert into inbox (message_id, seq, instance) values ($1, $2, 0)`, b.message(seq).MessageID, seq); err != nil {
		b.Fatal(err)
	}
	return release
}

func TestAHandlerIsBoundedByItsTimeout(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.HandlerTimeout, o.Budget.Attempts = 100*time.Millisecond, 1000 })
	release := b.lockClaim(0)
	b.publish(b.messages(1)...)
	b.eventually("it has timed out twice", retried, 2)
	release()
	// A statement that was given up may still be carried out by the server: then the last attempt finds a duplicate.
	b.eventually("it is applied in the end", func(l *log) int { return l.settled(0) }, 1)
	b.stop()
	b.wantEffects(1)
	for _, r := range b.log.retried {
		if r.Class != "transient" {
			t.Errorf("a time-out is classed %q", r.Class)
		}
	}
}

func TestPrefetchBoundsWhatIsHeldAndTheStopFinishesIt(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) {
		o.Workers, o.Prefetch, o.Concurrency, o.AckBatch, o.AckInterval = 1, 10, 1, 10, time.Hour
		o.ServiceTime = fixed(t, 20*time.Millisecond)
	})
	b.publish(b.messages(100)...)
	b.eventually("the first are at work", func(l *log) int { return len(l.handled) }, 1)
	b.service.Stop()
	b.awaitEnd(rabbittest.Patience)
	delivered := b.log.read(func(l *log) int { return len(l.delivered) })
	if delivered < 10 || delivered > 30 || b.log.read(acked) != delivered || b.log.released != 0 {
		t.Errorf("%d delivered, %d acked, %d released; want all that was held finished", delivered, b.log.read(acked), b.log.released)
	}
	b.wantReady(b.Plan.Work, 100-delivered)
	b.wantEffects(int64(delivered))
}

func TestAStopBeforeTheBrokerAnswersEndsRun(t *testing.T) {
	t.Parallel()
	b := prepare(t, nil)
	b.Tamper(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(b.Plan.Work, false, false, false)
		return err
	})
	b.run()
	b.service.Stop()
	b.service.Stop() // a second one is no harm
	b.awaitEnd(10 * time.Second)
}
