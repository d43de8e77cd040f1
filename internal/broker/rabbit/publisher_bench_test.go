package rabbit

import (
	"context"
	"os"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/topology"
)

// BenchmarkPublish publishes 512-byte messages to the real broker through a window of 256 and waits for every outcome.
func BenchmarkPublish(b *testing.B) {
	uri := os.Getenv("SPILLWAY_TEST_URI")
	if uri == "" {
		b.Fatal("SPILLWAY_TEST_URI is not set: run make test, which starts the servers")
	}
	d, err := New(Config{URIs: []string{uri}})
	if err != nil {
		b.Fatal(err)
	}
	plan, err := topology.Build(topology.Settings{
		Prefix: "bench", DeadLetterStrategy: topology.AtLeastOnce, DeliveryLimit: 8, DeliveryLimitTo: topology.ToParking,
		ReturnVia: topology.ViaQueue, ParkVia: topology.ViaPublish, Tiers: []time.Duration{time.Second}, TimeScale: 1,
		Declare: topology.DeclareArguments,
	})
	if err != nil {
		b.Fatal(err)
	}
	admin := NewAdmin(d)
	defer admin.Close()
	if err := admin.Declare(b.Context(), plan); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := admin.Delete(context.Background(), plan); err != nil {
			b.Error(err)
		}
	}()
	slots := make(chan struct{}, 256)
	p, err := d.OpenPublisher(b.Context(), "bench", 256, func(batch []broker.Settlement) {
		for range batch {
			<-slots
		}
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	m := benchMessage(plan.Orders)
	b.ReportAllocs()
	for i := range b.N {
		slots <- struct{}{}
		m.Headers.Seq = int64(i)
		if err := p.Publish(b.Context(), uint64(i), m); err != nil {
			b.Fatal(err)
		}
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func benchMessage(exchange string) *broker.Message {
	return &broker.Message{
		Exchange: exchange, RoutingKey: "order.created", MessageID: "018f0000-0000-7000-8000-000000000000",
		CorrelationID: "018f0000-0000-7000-8000-000000000000", Type: envelope.TypeOrderCreated, ContentType: "application/json",
		Timestamp: time.Now(),
		Headers:   envelope.Headers{Run: "20260101-000000-abcdef", ScheduledAt: 1767225600000000, SentAt: 1767225600000001},
		Body:      make([]byte, 512),
	}
}
