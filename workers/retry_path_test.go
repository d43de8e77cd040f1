package workers_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/envelope"
	"spillway/internal/topology"
	"spillway/workers/service"
)

// longTier keeps what is retried where a test can read it.
func longTier(o *options) {
	o.topology = func(s *topology.Settings) { s.Tiers = []time.Duration{time.Hour} }
}

func TestATransientFailureLeavesACopyInTheTierAndAcksTheOriginal(t *testing.T) {
	t.Parallel()
	b := start(t, longTier)
	always(b.failing, service.Shares{Transient: 1})
	sent := b.message(0)
	b.publish(sent)
	b.eventually("the original is acked", acked, 1)
	b.stop()
	b.wantReady(b.Plan.Work, 0)
	got := b.take(b.Plan.Tiers[0].Queues[0].Queue, 1)[0]
	if got.MessageID != sent.MessageID || !bytes.Equal(got.Body, sent.Body) || got.Type != sent.Type || got.CorrelationID != sent.CorrelationID ||
		got.ContentType != sent.ContentType || got.Timestamp.Unix() != sent.Timestamp.Unix() || got.Expiration != 0 {
		t.Errorf("the copy is %+v, want the properties of %+v", got, sent)
	}
	want := sent.Headers
	want.Retries, want.RetryDelay, want.RetriedAt = 1, time.Hour.Microseconds(), got.Headers.RetriedAt
	want.Failure = envelope.Failure{
		Class: "transient", LastError: got.Headers.Failure.LastError, FirstFailedAt: got.Headers.Failure.FirstFailedAt,
		OriginalExchange: b.Plan.Orders, OriginalRoutingKey: "order.created", SchemaVersion: 1, Producer: "producer", WorkerVersion: "test",
	}
	if got.Headers != want || got.Headers.Attempt() != 2 {
		t.Errorf("the copy's headers are\n%+v, want\n%+v", got.Headers, want)
	}
	if f := got.Headers.Failure; f.LastError == "" || f.FirstFailedAt < sent.Headers.SentAt || got.Headers.RetriedAt < f.FirstFailedAt {
		t.Errorf("failure %+v, retried at %d", f, got.Headers.RetriedAt)
	}
	e := b.log.retried[0]
	if e.Seq != 0 || e.Attempt != 1 || e.Tier != "1h" || e.Delay != time.Hour || e.Class != "transient" {
		t.Errorf("announced %+v", e)
	}
	if n := len(b.effects()); n != 0 {
		t.Errorf("%d effects of a failed attempt", n)
	}
}

func TestARetriedMessageIsAppliedAndKeepsItsFirstFailure(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.Budget.Attempts = 1000 })
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.messages(20)...)
	b.eventually("each failed twice", retried, 40)
	b.failing.Close()
	b.eventually("all are applied", applied, 20)
	b.stop()
	b.wantEffects(20)
	attempts := map[int]int{}
	for _, d := range b.log.delivered {
		attempts[d.Attempt]++
		if d.Attempt > 1 != d.HasDelayError || d.DelayError < -time.Millisecond || d.DelayError > 10*time.Second {
			t.Errorf("attempt %d has a delay error of %v (%v)", d.Attempt, d.DelayError, d.HasDelayError)
		}
	}
	if attempts[1] != 20 || attempts[2] != 20 || b.log.acked != len(b.log.delivered) {
		t.Errorf("deliveries by attempt: %v, %d acked; want 20 of each of the first two, and all acked", attempts, b.log.acked)
	}
	tiers := map[string]int{}
	for _, r := range b.log.retried {
		tiers[r.Tier]++
	}
	if tiers["50ms"] != 20 || tiers["100ms"] != len(b.log.retried)-20 {
		t.Errorf("retries by tier: %v, want 20 in the first and the rest in the second", tiers)
	}
}

func TestTheFirstFailureTravelsOn(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.message(0))
	b.eventually("it is parked after three attempts", parked, 1)
	b.stop()
	got := b.take(b.Plan.Parking, 1)[0].Headers
	if got.Failure.OriginalExchange != b.Plan.Orders || got.Failure.OriginalRoutingKey != "order.created" {
		t.Errorf("parked with the route %q %q, want the first one", got.Failure.OriginalExchange, got.Failure.OriginalRoutingKey)
	}
	if got.Retries != 2 || b.base.FromMicros(got.Failure.FirstFailedAt) > b.log.retried[0].At {
		t.Errorf("parked with %d retries, first failed at %v, after the first retry", got.Retries, b.base.FromMicros(got.Failure.FirstFailedAt))
	}
}

// TestTheOriginalIsAckedOnlyAfterTheBrokerTookTheCopy takes the tier's binding away: the copy is returned, and a worker
// that acked now would lose the message.
func TestTheOriginalIsAckedOnlyAfterTheBrokerTookTheCopy(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	tier := b.Plan.Tiers[0].Queues[0]
	b.Tamper(t, func(ch *amqp.Channel) error { return ch.QueueUnbind(tier.Queue, tier.RoutingKey, b.Plan.Retry, nil) })
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.messages(5)...)
	began := time.Now()
	b.eventually("copies are returned, again and again", func(l *log) int { return l.republished[broker.Returned] }, 15)
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("15 tries of 5 copies within %v: there is no backoff", took)
	}
	if b.log.read(acked) != 0 || b.log.read(retried) != 0 || b.log.read(func(l *log) int { return len(l.handled) }) != 5 {
		t.Errorf("%d acked, %d retried, %d handled while no copy was taken", b.log.read(acked), b.log.read(retried), len(b.log.handled))
	}
	b.failing.Close()
	if err := b.Admin.Declare(rabbittest.Context(t), b.Plan); err != nil { // restores the binding
		t.Fatal(err)
	}
	b.eventually("originals and copies are acked", acked, 10)
	b.stop()
	b.wantEffects(5)
	b.wantReady(b.Plan.Work, 0)
	if n := b.log.republished[broker.Confirmed]; n != 5 {
		t.Errorf("%d copies were taken, want 5", n)
	}
}

// TestAHardStopWithoutACopyGivesTheOriginalBack is the other end of the same rule.
func TestAHardStopWithoutACopyGivesTheOriginalBack(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	tier := b.Plan.Tiers[0].Queues[0]
	b.Tamper(t, func(ch *amqp.Channel) error { return ch.QueueUnbind(tier.Queue, tier.RoutingKey, b.Plan.Retry, nil) })
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.messages(5)...)
	b.eventually("copies are returned", func(l *log) int { return l.republished[broker.Returned] }, 5)
	b.abort()
	b.awaitEnd(5 * time.Second)
	b.wantReady(b.Plan.Work, 5)
	if b.log.released != 5 || b.log.acked != 0 {
		t.Errorf("%d released, %d acked; want all 5 released", b.log.released, b.log.acked)
	}
}

// TestBudgetsPark gives each budget a message that uses it up.
func TestBudgetsPark(t *testing.T) {
	t.Parallel()
	old := func(b *bench, m *broker.Message) {
		m.Body = b.body(m, func(o *envelope.Order) { o.OccurredAt = o.OccurredAt.Add(-2 * time.Hour) })
	}
	rows := []struct { // by sequence
		name    string
		change  func(*bench, *broker.Message)
		reason  string
		attempt int
	}{
		{"attempts are used up", func(*bench, *broker.Message) {}, "attempts-exhausted", 3},
		{"the message is too old", old, "age-exhausted", 1},
		{"a redrive opens a new age budget", func(b *bench, m *broker.Message) {
			old(b, m)
			m.Headers.RedrivenAt = b.base.Micros(b.base.Now())
		}, "attempts-exhausted", 3},
		{"the deadline has passed", func(_ *bench, m *broker.Message) { m.Headers.Deadline = 1 }, "deadline-passed", 1},
		{"an unknown failure has a smaller budget", func(*bench, *broker.Message) {}, "unknown-exhausted", 2}, // last: see below
	}
	b := start(t, func(o *options) { o.Budget.MaxAge = time.Hour })
	last := len(rows) - 1
	var all []*broker.Message
	for seq, row := range rows {
		m := b.message(int64(seq))
		row.change(b, m)
		all = append(all, m)
	}
	always(b.failing, service.Shares{Transient: 1})
	b.publish(all[:last]...)
	b.eventually("all but the last are parked", parked, last)
	always(b.failing, service.Shares{Unknown: 1})
	b.publish(all[last])
	b.eventually("all are parked", parked, len(rows))
	b.stop()
	b.wantReady(b.Plan.Work, 0)
	for _, p := range b.log.parked {
		if row := rows[p.Seq]; p.Reason != row.reason || p.Attempt != row.attempt {
			t.Errorf("%s: parked for %s on attempt %d, want %s on %d", row.name, p.Reason, p.Attempt, row.reason, row.attempt)
		}
	}
	for _, got := range b.take(b.Plan.Parking, len(rows)) {
		m, row := all[got.Headers.Seq], rows[got.Headers.Seq]
		if got.MessageID != m.MessageID || !bytes.Equal(got.Body, m.Body) || got.Headers.Attempt() != row.attempt || got.Headers.Failure.Class == "" {
			t.Errorf("%s: parked as %q with %+v", row.name, got.MessageID, got.Headers)
		}
	}
}

// body returns the message's body with a change in it.
func (b *bench) body(m *broker.Message, change func(*envelope.Order)) []byte {
	b.Helper()
	o, err := envelope.Decode(m.Body)
	if err != nil {
		b.Fatal(err)
	}
	change(&o)
	return o.AppendJSON(nil, 512)
}

// TestAProducersTTLTravelsAsADeadline: copied as a TTL it would expire in the tier.
func TestAProducersTTLTravelsAsADeadline(t *testing.T) {
	t.Parallel()
	b := start(t, longTier)
	always(b.failing, service.Shares{Transient: 1})
	m := b.message(0)
	m.Expiration = 3 * time.Hour
	b.publish(m)
	b.eventually("the original is acked", acked, 1)
	b.stop()
	got := b.take(b.Plan.Tiers[0].Queues[0].Queue, 1)[0]
	if got.Expiration != 0 || got.Headers.Deadline != m.Headers.SentAt+(3*time.Hour).Microseconds() {
		t.Errorf("the copy has a TTL of %v and the deadline %d, want none and %d", got.Expiration, got.Headers.Deadline, m.Headers.SentAt+(3*time.Hour).Microseconds())
	}
}

// TestAnUnansweredCopyIsPublishedAgain has the copies' connection hang, as under a memory alarm, while acks still pass.
func TestAnUnansweredCopyIsPublishedAgain(t *testing.T) {
	t.Parallel()
	var proxy *rabbittest.Proxy
	b := start(t, func(o *options) {
		o.Workers, o.Concurrency, o.RetryPublishTimeout = 1, 2, 100*time.Millisecond
		o.driver = func(b *rabbittest.Broker) broker.Driver {
			proxy = b.Proxy(t)
			return split{Driver: b.Driver, publish: proxy.Driver}
		}
	})
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.message(0))
	b.eventually("the copies' connection works", retried, 1)
	b.eventually("and all is settled", acked, 3)
	proxy.Stall(true)
	b.publish(b.message(1))
	b.eventually("the copy is not answered", func(l *log) int { return l.republished[broker.Unknown] }, 1)
	if got := b.log.read(acked); got != 3 {
		t.Errorf("%d acked, want no more than the 3 of the first message", got)
	}
	b.failing.Close()
	proxy.Cut()
	proxy.Stall(false)
	b.eventually("the second message is settled", func(l *log) int { return l.settled(1) }, 1)
	b.stop()
	if got := b.effects(); got[1] != 1 {
		t.Errorf("effects %v, want one of message 1", got)
	}
	if b.log.reconnected["republisher"] == 0 {
		t.Error("the republisher's reconnect was not counted")
	}
}

// TestARetryPublishIsBoundedAlsoWhenNothingCanBeWritten has one handler, so that the first unanswered copy fills the window.
func TestARetryPublishIsBoundedAlsoWhenNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	var proxy *rabbittest.Proxy
	b := start(t, func(o *options) {
		o.Workers, o.Concurrency, o.RetryPublishTimeout = 1, 1, 100*time.Millisecond
		o.driver = func(b *rabbittest.Broker) broker.Driver {
			proxy = b.Proxy(t)
			return split{Driver: b.Driver, publish: proxy.Driver}
		}
	})
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.message(0))
	b.eventually("the copies' connection works", acked, 3)
	proxy.Stall(true)
	b.publish(b.message(1))
	b.eventually("the copy is tried again and again", func(l *log) int { return l.republished[broker.Unknown] }, 4)
	if got := b.log.read(acked); got != 3 {
		t.Errorf("%d acked, want no more than the 3 of the first message", got)
	}
	b.abort()
	b.awaitEnd(5 * time.Second)
	b.wantReady(b.Plan.Work, 1)
}

// split takes another way for publishing.
type split struct {
	broker.Driver
	publish broker.Driver
}

// OpenPublisher implements broker.Driver.
func (s split) OpenPublisher(ctx context.Context, name string, window int, settled func([]broker.Settlement), flow broker.Flow) (broker.Publisher, error) {
	return s.publish.OpenPublisher(ctx, name, window, settled, flow)
}
