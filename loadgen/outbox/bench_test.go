package outbox_test

import (
	"context"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// benchWindow is the confirm window of both sides of the comparison.
const benchWindow = 256

func benchFactory(base *timebase.Base, exchange string) *publish.Factory {
	return &publish.Factory{
		Base: base, Run: run, Seed: 1, Exchange: exchange, Size: draw.Fixed(512), CountMin: 1, CountMax: 3, SKUs: []string{postgres.SKU(0)},
	}
}

// BenchmarkDirect publishes messages of 512 bytes as the direct mode does: what BenchmarkRelay is held against.
func BenchmarkDirect(b *testing.B) {
	rabbit := rabbittest.New(b, nil)
	base := timebase.New()
	b.ReportAllocs()
	b.ResetTimer()
	p := publish.New(publish.Config{
		Name: "bench", Driver: rabbit.Driver, Base: base, Factory: benchFactory(base, rabbit.Plan.Orders), Window: benchWindow,
		ShedAfter: time.Hour, CatchUp: publish.NewCatchUp(publish.Burst, nil), Observer: event.NopLoad{}, Links: event.NopLinks{},
	})
	go func() {
		for seq := range int64(b.N) {
			p.Offer(publish.Arrival{Seq: seq, Scheduled: base.Now()})
		}
		p.Finish()
	}()
	if err := p.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkRelay relays rows that lie in the outbox, confirmed and marked sent, through the same window.
func BenchmarkRelay(b *testing.B) {
	for name, lanes := range map[string]int{"lanes=1": 1, "lanes=2": 2, "lanes=3": 3} {
		b.Run(name, func(b *testing.B) { benchmarkRelay(b, lanes, outbox.DefaultBatch) })
	}
}

func benchmarkRelay(b *testing.B, lanes, batch int) {
	b.Helper()
	rabbit := rabbittest.New(b, nil)
	db := postgrestest.NewSized(b, postgres.Settings{}, 24)
	base := timebase.New()
	factory := benchFactory(base, rabbit.Plan.Orders)
	fill(b, db, base, factory, b.N)
	book := outbox.NewBook()
	relays := outbox.NewRelays(outbox.RelayConfig{
		Name: "bench", Driver: rabbit.Driver, Pool: db.Pool(), Source: outbox.Orders(rabbit.Plan.Orders, run), Book: book, Base: base,
		Window: benchWindow, Batch: batch, Lanes: lanes, Poll: outbox.DefaultPoll, Hold: outbox.DefaultHold,
		Load: event.NopLoad{}, Observer: outbox.Nop{}, Links: event.NopLinks{},
	}, 1)
	b.ReportAllocs()
	b.ResetTimer()
	ended := make(chan error, 1)
	go func() { ended <- relays.Run(context.Background()) }()
	if !relays.Drain(b.Context()) {
		b.Error("not drained")
	}
	b.StopTimer()
	relays.Stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	if c := book.Counts(); c.Confirmed != int64(b.N) || c.Marked != int64(b.N) {
		b.Fatalf("counted %+v", c)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// fill writes n rows at once: the table as the writers would leave it.
func fill(b *testing.B, db *postgres.DB, base *timebase.Base, f *publish.Factory, n int) {
	b.Helper()
	var m broker.Message
	f.Make(&m, nil, 0, base.Now(), 0)
	const query = `
insert into outbox (id, seq, instance, scheduled_at, message_id, type, routing_key, correlation_id, trace_parent, body)
select gen, i, 0, now(), gen, $2, $3, $4, $5, $6
  from (select i, ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid as gen from generate_series(0, $1::int - 1) i) s`
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{query, []any{n, m.Type, m.RoutingKey, m.CorrelationID, m.Headers.TraceParent, m.Body}},
		{`analyze outbox`, nil},
	} {
		if _, err := db.Pool().Exec(b.Context(), q.sql, q.args...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriter writes orders with their events as fast as 16 writers can, each order in a transaction of its own.
func BenchmarkWriter(b *testing.B) {
	const writers = 16
	db := postgrestest.NewSized(b, postgres.Settings{}, writers)
	base := timebase.New()
	w := outbox.NewWriter(outbox.WriterConfig{
		Pool: db.Pool(), Base: base, Maker: benchFactory(base, "orders"), Run: run, Writers: writers, ShedAfter: time.Hour, Event: true,
		Observer: outbox.Nop{}, Done: func(publish.Arrival) {}, GaveUp: func(a publish.Arrival) { b.Errorf("order %d was given up", a.Seq) },
	})
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		defer w.Finish()
		for seq := range int64(b.N) {
			w.Offer(publish.Arrival{Seq: seq, Scheduled: base.Now()})
		}
	}()
	if err := w.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
