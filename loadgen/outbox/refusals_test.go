package outbox_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/loadgen/outbox"
)

func TestRefusalsAreRelayedAsEventsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const queue, key, n = "events", "stock.refused", 120
	s.broker.Tamper(t, func(ch *amqp.Channel) error {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
		return ch.QueueBind(queue, key, s.broker.Plan.Orders, false, nil)
	})
	s.exec(`
insert into inventory_outbox (id, message_id, type, payload)
select gen_random_uuid(), m, 'stock.refused',
       jsonb_build_object('order_id', 'order-' || i, 'correlation_id', 'req-' || i, 'causation_id', m, 'sku', 'SKU-000001', 'count', 2, 'reason', 'no-stock')
  from (select i, gen_random_uuid() as m from generate_series(1, $1::int) i) s`, n)
	cfg := s.relayConfig()
	cfg.Source, cfg.Load = outbox.Refusals(s.broker.Plan.Orders, key, run), nil
	cfg.Kill = countdown(outbox.AfterConfirm, 2)
	relays := outbox.NewRelays(cfg, 1)
	ended := make(chan error, 1)
	go func() { ended <- relays.Run(s.context()) }()
	if !relays.Drain(s.context()) {
		t.Error("not drained")
	}
	relays.Stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for _, m := range s.broker.Lying(t, queue) {
		ids[m.MessageID]++
	}
	if len(ids) != n || relays.Kills() != 1 || s.book.Counts().Marked != n || s.book.Counts().Duplicates == 0 {
		t.Errorf("%d distinct events, %d deaths, %+v; want %d events, 1 death and its duplicates", len(ids), relays.Kills(), s.book.Counts(), n)
	}
	if got := s.count(`select count(*) from inventory_outbox where sent_at is not null and id::text = any($1)`, keys(ids)); got != n {
		t.Errorf("%d rows are marked under the ids that were published, want %d", got, n)
	}
	s.wantRefusal(queue)
}

func keys(of map[string]int) (out []string) {
	for k := range of {
		out = append(out, k)
	}
	return out
}

// wantRefusal looks at one event.
func (s *stage) wantRefusal(queue string) {
	s.Helper()
	consumer, err := s.broker.Driver.OpenConsumer(s.context(), "test", broker.ConsumerOptions{Queue: queue, Tag: "t", Prefetch: 1})
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = consumer.Close(s.context()) }()
	d := (<-consumer.Deliveries())[0]
	o, err := envelope.Decode(d.Body)
	if err != nil {
		s.Fatalf("%s: %v", d.Body, err)
	}
	number := o.Aggregate.ID[len("order-"):]
	if o.ID != d.MessageID || o.Type != "stock.refused" || d.Type != o.Type || o.CorrelationID != "req-"+number ||
		d.CorrelationID != o.CorrelationID || o.Producer != "inventory" || o.Data != (envelope.Data{SKU: "SKU-000001", Count: 2}) {
		s.Errorf("delivery %+v with body %s", d, d.Body)
	}
	if cause := s.count(`select count(*) from inventory_outbox where id = $1::uuid and message_id = $2::uuid`, o.ID, o.CausationID); cause != 1 {
		s.Errorf("the event %s is not caused by message %s", o.ID, o.CausationID)
	}
	if d.Headers.Run != run || d.Headers.Seq != envelope.NoSeq || d.Headers.SentAt == 0 {
		s.Errorf("headers %+v", d.Headers)
	}
}
