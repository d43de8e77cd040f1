package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/timebase"
	"spillway/internal/topology"
	"spillway/loadgen/draw"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// relay holds the outbox relay against direct publishing.
type relay struct{}

func (relay) name() string  { return "relay" }
func (relay) title() string { return "The outbox relay" }

func (relay) targets() []target {
	return []target{{Measure: "outbox relay, rows/s confirmed, against direct publishing at the same window", Unit: "x", Bound: new(0.5), Digits: 3}}
}

// relayRows is what one run publishes: some seconds.
const relayRows = 50_000

func (relay) steps(o options) (int, time.Duration) { return o.pairs, 10*time.Second + quiet }

func (m relay) run(ctx context.Context, e *env) (s section, err error) {
	if err := e.needDatabase(); err != nil {
		return s, err
	}
	t := task{Window: e.o.load.window, Size: e.o.load.size, Rows: relayRows, Lanes: outbox.DefaultLanes}
	pairs, err := e.pairs(ctx, "relay",
		side{"relay", func(ctx context.Context) (measurement, error) { return e.child(ctx, "relay", t) }},
		side{"direct", func(ctx context.Context) (measurement, error) { return e.child(ctx, "direct", t) }})
	if err != nil {
		return s, err
	}
	s.Rows = []row{m.targets()[0].ratioRow(pairs, perSecondOf, perSecond)}
	s.Text = fmt.Sprintf(textRelay, thousands(relayRows), t.Size, t.Window, t.Lanes, outbox.DefaultBatch)
	s.Runs = rateTable("rows/s", "relay", "direct", pairs)
	return s, nil
}

const textRelay = `%s messages of %d bytes into a quorum queue that nobody consumes, with a window of %d, connecting included. **Relay**: the rows lie
in the outbox; one relay with %d lanes claims up to %d of them at once, publishes them, and the clock stops when all are confirmed
and marked as sent. **Direct**: the publisher of the direct mode makes the messages from memory, and the clock stops at the last
confirm.`

// queue is a topology in a virtual host of its own.
type queue struct {
	plan        *topology.Plan
	provisioned *rabbit.Provisioned
	management  *rabbit.Management
}

func newQueue(ctx context.Context, s servers) (*queue, error) {
	driver, err := rabbit.New(rabbit.Config{URIs: []string{s.uri}})
	if err != nil {
		return nil, err
	}
	q := &queue{}
	if q.management, err = rabbit.NewManagement(rabbit.ManagementConfig{URL: s.management}); err != nil {
		return nil, err
	}
	overview, err := q.management.Overview(ctx)
	if err != nil {
		return nil, err
	}
	major, _, _ := rabbit.MajorMinor(overview.Version)
	q.plan, err = topology.Build(topology.Settings{
		DeadLetterStrategy: topology.AtLeastOnce, DeliveryLimit: 8, DeliveryLimitTo: topology.ToParking, ReturnVia: topology.ViaQueue,
		ParkVia: topology.ViaPublish, Tiers: []time.Duration{5 * time.Second}, TimeScale: 1, Declare: topology.DeclarePolicy, BrokerMajor: major,
	})
	if err != nil {
		return nil, err
	}
	q.provisioned, err = rabbit.Provision(ctx, rabbit.ProvisionOptions{
		Isolation: rabbit.IsolationVhost, Declare: topology.DeclarePolicy, Management: rabbit.ManagementFull,
		RunID: "benchself-" + strings.ToLower(rand.Text()), Plan: q.plan, Driver: driver, Client: q.management,
	})
	return q, err
}

// remove deletes the virtual host and closes what is open.
func (q *queue) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	defer q.management.Close()
	defer q.provisioned.Close()
	return q.provisioned.Remove(ctx)
}

const relayRun = "benchself"

func (q *queue) factory(base *timebase.Base, size int) *publish.Factory {
	return &publish.Factory{
		Base: base, Run: relayRun, Seed: 1, Exchange: q.plan.Orders, Size: draw.Fixed(size), CountMin: 1, CountMax: 5, SKUs: []string{postgres.SKU(0)},
	}
}

// runDirect publishes as the direct mode does, with nobody listening.
func runDirect(ctx context.Context, s servers, t task) (m measurement, err error) {
	q, err := newQueue(ctx, s)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, q.remove(ctx)) }()
	base := timebase.New()
	p := publish.New(publish.Config{
		Name: "benchself", Driver: q.provisioned.Driver(), Base: base, Factory: q.factory(base, t.Size), Window: t.Window, ShedAfter: time.Hour,
		CatchUp: publish.NewCatchUp(publish.Burst, nil), Observer: event.NopLoad{}, Links: event.NopLinks{},
	})
	began := time.Now()
	go func() {
		for seq := range int64(t.Rows) {
			p.Offer(publish.Arrival{Seq: seq, Scheduled: base.Now()})
		}
		p.Finish()
	}()
	err = p.Run(ctx)
	return measurement{PerSecond: float64(t.Rows) / time.Since(began).Seconds(), Count: int64(t.Rows)}, err
}

var errNotRelayed = errors.New("not every row was confirmed and marked")

// runRelay publishes rows that lie in the outbox.
func runRelay(ctx context.Context, s servers, t task) (m measurement, err error) {
	q, err := newQueue(ctx, s)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, q.remove(ctx)) }()
	t.Conns = outbox.Connections(0, 1, t.Lanes)
	db, drop, err := schemaFor(ctx, s, t)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	base, book := timebase.New(), outbox.NewBook()
	if err := fillOutbox(ctx, db, q.factory(base, t.Size), base, t.Rows); err != nil {
		return m, err
	}
	relays := outbox.NewRelays(outbox.RelayConfig{
		Name: "benchself", Driver: q.provisioned.Driver(), Pool: db.Pool(), Source: outbox.Orders(q.plan.Orders, relayRun), Book: book, Base: base,
		Window: t.Window, Batch: outbox.DefaultBatch, Lanes: t.Lanes, Poll: outbox.DefaultPoll, Hold: outbox.DefaultHold,
		Load: event.NopLoad{}, Observer: outbox.Nop{}, Links: event.NopLinks{},
	}, 1)
	ended := make(chan error, 1) // room for the one answer
	began := time.Now()
	go func() { ended <- relays.Run(ctx) }()
	drained := relays.Drain(ctx)
	elapsed := time.Since(began)
	relays.Stop()
	err = <-ended
	if c := book.Counts(); err == nil && (!drained || c.Confirmed != int64(t.Rows) || c.Marked != int64(t.Rows)) {
		err = fmt.Errorf("%w: %d and %d of %d", errNotRelayed, c.Confirmed, c.Marked, t.Rows)
	}
	return measurement{PerSecond: float64(t.Rows) / elapsed.Seconds(), Count: int64(t.Rows)}, err
}

// sqlFill writes $1 rows as the writers of orders would leave them, but for the sequence all alike.
const sqlFill = `
insert into outbox (id, seq, instance, scheduled_at, message_id, type, routing_key, correlation_id, trace_parent, body)
select id, i, 0, now(), id, $2, $3, $4, $5, $6
  from (select i, ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid as id from generate_series(0, $1::int - 1) i) s`

func fillOutbox(ctx context.Context, db *postgres.DB, f *publish.Factory, base *timebase.Base, rows int) error {
	var m broker.Message
	f.Make(&m, nil, 0, base.Now(), 0)
	if _, err := db.Pool().Exec(ctx, sqlFill, rows, m.Type, m.RoutingKey, m.CorrelationID, m.Headers.TraceParent, m.Body); err != nil {
		return fmt.Errorf("fill the outbox: %w", err)
	}
	_, err := db.Pool().Exec(ctx, `analyze outbox`)
	return err
}
