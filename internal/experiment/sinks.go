package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"spillway/internal/event"
	"spillway/internal/ledger"
	"spillway/internal/postgres"
	"spillway/internal/result"
	"spillway/loadgen"
	"spillway/loadgen/arrival"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// Modes of publishing, as profiles name them.
const (
	modeDirect       = "direct"
	modeOutbox       = "outbox"
	modeDBFirst      = "db-first"
	modePublishFirst = "publish-first"
)

// sinks makes what takes the arrivals to the broker: a publisher for each connection, or one way through the database.
func (r *run) sinks(shape arrival.Shape, f *publish.Factory) ([]loadgen.Sink, error) {
	l, mode := &r.o.Profile.Load, r.o.Profile.Publish.Mode
	if mode == modeDirect {
		var sinks []loadgen.Sink
		for i := range l.Publishers {
			sinks = append(sinks, r.publisher(i, f, r.catchUp(shape, l.Publishers), r.loadObserver()))
		}
		return sinks, nil
	}
	db, err := r.openOrders()
	if err != nil {
		return nil, err
	}
	r.orders = db
	if mode == modeOutbox {
		r.outbox = outbox.New(r.outboxConfig(shape, f))
		return []loadgen.Sink{r.outbox}, nil
	}
	return []loadgen.Sink{r.dualWrite(mode, shape, f)}, nil
}

func (r *run) publisher(i int, f *publish.Factory, c *publish.CatchUp, o event.LoadObserver) *publish.Publisher {
	l := &r.o.Profile.Load
	return publish.New(publish.Config{
		Name: fmt.Sprintf("spillway-producer-%d", i), Driver: r.broker.Driver(), Base: r.base, Factory: f,
		Window: l.ConfirmWindow, ShedAfter: l.ShedAfter, CatchUp: c, Replay: r.replay(), Observer: o,
		Links: event.Links{r.signals, r.metrics},
	})
}

// replay chooses the messages that are published a second time.
func (r *run) replay() publish.Replay {
	p := &r.o.Profile.Publish
	if p.Replay.Share == 0 || p.Mode != modeDirect {
		return publish.Replay{}
	}
	return publish.Replay{
		Chosen: func(seq int64) bool { return chance(r.seed^replaySalt, uint64(seq)) < p.Replay.Share }, After: p.Replay.After,
	}
}

// catchUp makes the policy of one of n sinks, which is asked for an n-th of the shape's rate.
func (r *run) catchUp(shape arrival.Shape, n int) *publish.CatchUp {
	c := publish.NewCatchUp(r.o.Profile.Load.CatchUp, func(due time.Duration) float64 {
		return shape.Rate(due-leadTime) / float64(n)
	})
	r.catchUps = append(r.catchUps, c)
	return c
}

// openOrders opens the load side's own pool on the run's schema, so that writers and relays do not wait for handlers.
func (r *run) openOrders() (*postgres.DB, error) {
	o := &r.o.Profile.Publish.Outbox
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	db, err := postgres.Open(ctx, r.databaseConfig(r.db.Schema(), outbox.Connections(o.Writers, o.Relays, o.Lanes), "spillway-orders"))
	if err != nil {
		return nil, environment("database: %w", err)
	}
	return db, nil
}

func (r *run) outboxConfig(shape arrival.Shape, f *publish.Factory) outbox.Config {
	o, l := &r.o.Profile.Publish.Outbox, &r.o.Profile.Load
	var step atomic.Uint64 // of all relays together
	return outbox.Config{
		Pool: r.orders.Pool(), Schema: r.orders.Schema(), Driver: r.broker.Driver(), Base: r.base, Maker: f, Exchange: r.plan.Orders,
		Run: r.o.RunID, Writers: o.Writers, Relays: o.Relays, Lanes: o.Lanes, Batch: o.Batch, Window: l.ConfirmWindow, Poll: o.Poll,
		Hold: outbox.DefaultHold, ShedAfter: l.ShedAfter, MeasureFrom: leadTime + l.Warmup, CatchUp: r.catchUp(shape, 1),
		Load: r.loadObserver(), Links: event.Links{r.signals, r.metrics}, Observer: relayed{r},
		Kill: func(outbox.Point) bool { return r.dies(step.Add(1)) },
	}
}

func (r *run) dualWrite(mode string, shape arrival.Shape, f *publish.Factory) loadgen.Sink {
	o, l := &r.o.Profile.Publish.Outbox, &r.o.Profile.Load
	catchUp := r.catchUp(shape, 1)
	cfg := outbox.DualConfig{
		Pool: r.orders.Pool(), Base: r.base, Maker: f, Run: r.o.RunID, Writers: o.Writers, ShedAfter: l.ShedAfter, CatchUp: catchUp,
		Load: r.loadObserver(), Observer: outbox.Nop{},
		Kill: func(seq int64) bool { return r.dies(uint64(seq)) },
	}
	if mode == modeDBFirst {
		cfg.Observer = written{r}
		cfg.Publisher = func(o event.LoadObserver) *publish.Publisher { return r.publisher(0, f, nil, secondStep{o}) }
		return outbox.NewDBFirst(cfg)
	}
	cfg.Publisher = func(o event.LoadObserver) *publish.Publisher { return r.publisher(0, f, catchUp, o) }
	return outbox.NewPublishFirst(cfg)
}

// dies draws whether the process dies between its two steps, the n-th time that it is asked or for the n-th message.
func (r *run) dies(n uint64) bool { return chance(r.seed^killSalt, n) < r.o.Profile.Publish.KillShare }

// chance returns a number from 0 to below 1 that is a function of seed and n.
func chance(seed, n uint64) float64 {
	var source rand.PCG
	source.Seed(seed, n)
	return float64(source.Uint64()>>11) / (1 << 53)
}

// killSalt keeps the deaths apart from what else is drawn by seed and sequence.
const killSalt = 0x6b696c6c

// replaySalt does the same for the replays.
const replaySalt = 0x7265706c

// secondStep marks publishes that are the second of two steps: how late they are says nothing of the generator.
type secondStep struct{ event.LoadObserver }

// Sent implements event.LoadObserver.
func (s secondStep) Sent(e event.Sent) {
	e.Relayed = true
	s.LoadObserver.Sent(e)
}

// written hears of orders committed ahead of their event: how late the writing began is the generator's health there.
type written struct{ run *run }

// Written implements outbox.WriteObserver.
func (w written) Written(e outbox.Written) { w.run.wrote(e, false) }

func (r *run) wrote(e outbox.Written, queued bool) {
	if !e.Warmup {
		r.latencies.ScheduleLag.Record(e.Began - e.Scheduled)
	}
	if queued {
		r.metrics.Queued()
	}
}

// relayed hears of an outbox's writers and relays.
type relayed struct{ run *run }

// Written implements outbox.WriteObserver.
func (r relayed) Written(e outbox.Written) { r.run.wrote(e, true) }

// Claimed implements outbox.RelayObserver.
func (relayed) Claimed(string, int, time.Duration) {}

// Relayed implements outbox.RelayObserver.
func (r relayed) Relayed(e outbox.Relayed) {
	if e.Duplicate {
		return
	}
	if !e.Warmup {
		r.run.latencies.RelayLag.Record(e.Lag)
	}
	r.run.metrics.Relayed()
}

// readOrders reads the load side's tables: which events are pending, and what the way of publishing has lost.
func (r *run) readOrders(ctx context.Context, truth *ledger.Truth) {
	r.published = result.Publish{Mode: r.o.Profile.Publish.Mode}
	if r.orders == nil {
		return
	}
	err := r.orders.Orders(ctx, func(seq int64, _ int) error {
		truth.Ordered(seq)
		return nil
	})
	if err == nil && r.outbox != nil {
		err = r.readOutbox(ctx, truth)
	}
	if err != nil {
		truth.Unaudited(fmt.Sprintf("the orders: %v", err))
	}
}

// skipGrace is by how much relays that work side by side may overtake each other without one having skipped a row.
const skipGrace = 5 * time.Second

func (r *run) readOutbox(ctx context.Context, truth *ledger.Truth) error {
	err := r.orders.Outbox(ctx, func(row postgres.OutboxRow) error {
		if !row.Sent {
			truth.Pending(row.Seq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	state, err := r.orders.OutboxState(ctx, postgres.OutboxOrders, skipGrace)
	r.published.Relay = relaySummary(r.outbox.Counts(), r.outbox.Kills(), state)
	return err
}

func relaySummary(c outbox.Counts, kills int64, state postgres.OutboxState) *result.Relay {
	return &result.Relay{
		Batches: c.Claims, Published: c.Published, Duplicates: c.Duplicates, LostClaims: c.LostClaims, Kills: kills,
		Skipped: state.Skipped,
	}
}

// noteOrders writes what the account found of orders and events.
func (r *run) noteOrders() {
	if r.orders == nil {
		return
	}
	a := &r.account
	r.published.Orders, r.published.OrdersWithoutEvent = &a.Orders, &a.OrdersWithoutEvent
	r.published.EventsWithoutOrder = &a.EventsWithoutOrder
}
