package workers_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/topology"
	"spillway/workers"
	"spillway/workers/service"
)

// bad are the messages that no attempt can help, by the reason for which they are parked; their sequence is their place.
var bad = []struct {
	reason string
	spoil  func(*bench, *broker.Message)
	schema int // as far as the body could be read
}{
	{reason: "bad-json", spoil: func(_ *bench, m *broker.Message) { m.Body[0] = '[' }},
	{reason: "missing-field", schema: 1, spoil: func(b *bench, m *broker.Message) {
		m.Body = b.body(m, func(o *envelope.Order) { o.Data.SKU = "" })
	}},
	{reason: "unknown-schema", schema: 99, spoil: func(b *bench, m *broker.Message) {
		m.Body = b.body(m, func(o *envelope.Order) { o.SchemaVersion = 99 })
	}},
	{reason: "empty-id", schema: 1, spoil: func(_ *bench, m *broker.Message) { m.MessageID = "" }},
	{reason: "constraint", schema: 1, spoil: func(_ *bench, m *broker.Message) { m.MessageID = "no UUID" }},
	{reason: "forbidden-transition", schema: 1, spoil: func(*bench, *broker.Message) {}}, // last: the handler does it
}

// parkAll publishes one of each kind, stops the service when all are parked, and returns what was sent and what lies in
// the parking lot, by sequence.
func (b *bench) parkAll() (sent []*broker.Message, found map[int64]broker.Delivery) {
	b.Helper()
	for seq, kind := range bad {
		m := b.message(int64(seq))
		kind.spoil(b, m)
		sent = append(sent, m)
	}
	last := len(bad) - 1
	b.publish(sent[:last]...)
	b.eventually("all but the last are parked", parked, last)
	always(b.failing, service.Shares{Permanent: 1})
	b.publish(sent[last])
	b.eventually("all are parked", parked, len(bad))
	b.stop()
	b.wantReady(b.Plan.Work, 0)
	found = map[int64]broker.Delivery{}
	for _, d := range b.take(b.Plan.Parking, len(bad)) {
		found[d.Headers.Seq] = d
	}
	return sent, found
}

// wantParkedAtOnce fails unless each was parked on its first attempt for its reason, and nothing else happened.
func (b *bench) wantParkedAtOnce() {
	b.Helper()
	for _, p := range b.log.parked {
		if p.Reason != bad[p.Seq].reason || p.Attempt != 1 {
			b.Errorf("message %d is parked for %s on attempt %d, want %s on 1", p.Seq, p.Reason, p.Attempt, bad[p.Seq].reason)
		}
	}
	if len(b.log.delivered) != len(bad) || b.log.results(event.Permanent) != len(bad) || len(b.log.retried) != 0 || len(b.effects()) != 0 {
		b.Errorf("%d deliveries, %d retries, effects %v; want %d and none", len(b.log.delivered), len(b.log.retried), b.effects(), len(bad))
	}
}

func TestAPermanentFailureIsParkedOnAttemptOneWithItsMetadata(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	sent, found := b.parkAll()
	b.wantParkedAtOnce()
	for seq, m := range sent {
		got, kind := found[int64(seq)], bad[seq]
		if got.MessageID != m.MessageID || !bytes.Equal(got.Body, m.Body) || got.Type != m.Type || got.CorrelationID != m.CorrelationID {
			t.Errorf("%s: parked as %q with %+v, want the message as it was", kind.reason, got.MessageID, got.Headers)
		}
		f := got.Headers.Failure
		want := envelope.Failure{
			Class: "permanent", LastError: f.LastError, FirstFailedAt: f.FirstFailedAt, OriginalExchange: b.Plan.Orders,
			OriginalRoutingKey: "order.created", SchemaVersion: kind.schema, Producer: f.Producer, WorkerVersion: "test",
		}
		if f != want || f.LastError == "" || f.FirstFailedAt == 0 || (f.Producer == "producer") != (kind.schema != 0) {
			t.Errorf("%s: parked with %+v, want %+v", kind.reason, f, want)
		}
		if got.Headers.Retries != 0 || got.Headers.ScheduledAt != m.Headers.ScheduledAt {
			t.Errorf("%s: parked with headers %+v", kind.reason, got.Headers)
		}
	}
	if b.log.republished[broker.Confirmed] != len(bad) || b.log.acked != len(bad) {
		t.Errorf("%d copies, %d acks; want %d of each", b.log.republished[broker.Confirmed], b.log.acked, len(bad))
	}
}

func TestParkingByRejectLeavesTheRoutingToTheBroker(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) {
		o.Park = workers.ParkByReject
		o.topology = func(s *topology.Settings) { s.ParkVia = topology.ViaReject }
	})
	sent, found := b.parkAll()
	b.wantParkedAtOnce()
	for seq, m := range sent {
		if got := found[int64(seq)]; got.MessageID != m.MessageID || !bytes.Equal(got.Body, m.Body) || got.Headers != m.Headers {
			t.Errorf("%s: parked as %q with %+v, want the message untouched", bad[seq].reason, got.MessageID, got.Headers)
		}
	}
	if len(b.log.republished) != 0 || b.log.acked != 0 {
		t.Errorf("%v published, %d acked; want neither", b.log.republished, b.log.acked)
	}
}

// TestBadMessagesAmongGoodOnes rejects in the middle of ack batches: a multiple ack must neither settle a rejected
// delivery again nor pass over it.
func TestBadMessagesAmongGoodOnes(t *testing.T) {
	t.Parallel()
	for name, park := range map[string]workers.Park{"by publish": workers.ParkByPublish, "by reject": workers.ParkByReject} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, func(o *options) { o.Park = park })
			const n = 400
			all := b.messages(n)
			for seq := 0; seq < n; seq += 4 {
				all[seq].Body[0] = '['
			}
			b.publish(all...)
			b.eventually("the bad ones are parked", parked, n/4)
			b.eventually("the good ones are applied", func(l *log) int { return len(l.handled) }, n)
			b.stop()
			b.wantReady(b.Plan.Work, 0)
			b.wantReady(b.Plan.Parking, n/4)
			for seq, effects := range b.effects() {
				if seq%4 == 0 || effects != 1 {
					t.Errorf("message %d has %d effects", seq, effects)
				}
			}
			if n := len(b.log.delivered); n != 400 || len(b.log.reconnected) != 0 {
				t.Errorf("%d deliveries, reconnects %v; want 400 and none", n, b.log.reconnected)
			}
		})
	}
}

// TestARejectedDeliveryDoesNotBlockTheBatchesBehindIt keeps the timer out of the way, which acks one by one.
func TestARejectedDeliveryDoesNotBlockTheBatchesBehindIt(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) {
		o.Park, o.Workers, o.Concurrency, o.AckBatch, o.AckInterval = workers.ParkByReject, 1, 1, 5, time.Hour
	})
	all := b.messages(51)
	all[0].Body[0] = '['
	b.publish(all...)
	b.eventually("all others are acked in batches", acked, 50)
}

func TestALongErrorIsCutOnItsWay(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	m := b.message(0)
	m.Body = []byte(`{"schema_version":1,"occurred_at":"` + strings.Repeat("ä", 2000) + `"}`)
	b.publish(m)
	b.eventually("it is parked", parked, 1)
	b.stop()
	if got := []rune(b.take(b.Plan.Parking, 1)[0].Headers.Failure.LastError); len(got) != envelope.MaxErrorRunes {
		t.Errorf("the error has %d runes, want %d", len(got), envelope.MaxErrorRunes)
	}
}
