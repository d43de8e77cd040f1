package workers_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/topology"
	"spillway/workers"
	"spillway/workers/service"
)

// bad are the messages that no attempt can help.
var bad = map[string]struct {
	spoil  func(*bench, *broker.Message)
	fail   service.Shares
	schema int // as far as the body could be read
}{
	"bad-json": {spoil: func(_ *bench, m *broker.Message) { m.Body[0] = '[' }},
	"missing-field": {schema: 1, spoil: func(b *bench, m *broker.Message) {
		m.Body = b.body(m, func(o *envelope.Order) { o.Data.SKU = "" })
	}},
	"unknown-schema": {schema: 99, spoil: func(b *bench, m *broker.Message) {
		m.Body = b.body(m, func(o *envelope.Order) { o.SchemaVersion = 99 })
	}},
	"empty-id":             {schema: 1, spoil: func(_ *bench, m *broker.Message) { m.MessageID = "" }},
	"forbidden-transition": {schema: 1, fail: service.Shares{Permanent: 1}},
	"constraint":           {schema: 1, spoil: func(_ *bench, m *broker.Message) { m.MessageID = "no UUID" }},
}

func (b *bench) spoilt(kind string) *broker.Message {
	b.Helper()
	m := b.message(0)
	if spoil := bad[kind].spoil; spoil != nil {
		spoil(b, m)
	}
	if fail := bad[kind].fail; fail != (service.Shares{}) {
		always(b.failing, fail)
	}
	return m
}

// wantParkedAtOnce fails unless the message was parked on its first attempt, and nothing else happened.
func (b *bench) wantParkedAtOnce(kind string) {
	b.Helper()
	b.eventually("it is parked", parked, 1)
	b.stop()
	b.wantReady(b.Plan.Work, 0)
	if !slices.Equal(b.reasons(), []string{kind}) || b.log.parked[0].Attempt != 1 || b.log.parked[0].Seq != 0 {
		b.Errorf("parked %+v, want reason %s on attempt 1", b.log.parked, kind)
	}
	if len(b.log.delivered) != 1 || b.log.results(event.Permanent) != 1 || b.log.read(retried) != 0 || len(b.effects()) != 0 {
		b.Errorf("%d deliveries, %d retries, effects %v; want one and none", len(b.log.delivered), b.log.read(retried), b.effects())
	}
}

func TestAPermanentFailureIsParkedOnAttemptOneWithItsMetadata(t *testing.T) {
	t.Parallel()
	for kind, row := range bad {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := start(t, nil)
			m := b.spoilt(kind)
			b.publish(m)
			b.wantParkedAtOnce(kind)
			got := b.take(b.Plan.Parking, 1)[0]
			if got.MessageID != m.MessageID || !bytes.Equal(got.Body, m.Body) || got.Type != m.Type || got.CorrelationID != m.CorrelationID {
				t.Errorf("parked %+v, want the message as it was", got)
			}
			f := got.Headers.Failure
			want := envelope.Failure{
				Class: "permanent", LastError: f.LastError, FirstFailedAt: f.FirstFailedAt, OriginalExchange: b.Plan.Orders,
				OriginalRoutingKey: "order.created", SchemaVersion: row.schema, Producer: f.Producer, WorkerVersion: "test",
			}
			if f != want || f.LastError == "" || f.FirstFailedAt == 0 || (f.Producer == "producer") != (row.schema != 0) {
				t.Errorf("parked with %+v, want %+v", f, want)
			}
			if got.Headers.Retries != 0 || got.Headers.Seq != 0 || got.Headers.ScheduledAt != m.Headers.ScheduledAt {
				t.Errorf("parked with headers %+v", got.Headers)
			}
			if b.log.republished[broker.Confirmed] != 1 || b.log.read(acked) != 1 {
				t.Errorf("%d copies, %d acks; want one of each", b.log.republished[broker.Confirmed], b.log.read(acked))
			}
		})
	}
}

func TestParkingByRejectLeavesTheRoutingToTheBroker(t *testing.T) {
	t.Parallel()
	for kind := range bad {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := start(t, func(o *options) {
				o.Park = workers.ParkByReject
				o.topology = func(s *topology.Settings) { s.ParkVia = topology.ViaReject }
			})
			m := b.spoilt(kind)
			b.publish(m)
			b.wantParkedAtOnce(kind)
			got := b.take(b.Plan.Parking, 1)[0]
			if got.MessageID != m.MessageID || !bytes.Equal(got.Body, m.Body) || got.Headers != m.Headers {
				t.Errorf("parked %+v, want the message untouched", got)
			}
			if len(b.log.republished) != 0 || b.log.read(acked) != 0 {
				t.Errorf("%v published, %d acked; want neither", b.log.republished, b.log.read(acked))
			}
		})
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
