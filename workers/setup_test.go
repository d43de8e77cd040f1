package workers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/internal/timebase"
	"spillway/internal/topology"
	"spillway/workers"
	"spillway/workers/inbox"
	"spillway/workers/retry"
	"spillway/workers/service"
)

// log keeps what the workers announced.
type log struct {
	mu          sync.Mutex
	delivered   []event.Delivered
	handled     []event.Handled
	retried     []event.Retried
	parked      []event.Parked
	released    int
	acked       int
	republished map[broker.Outcome]int
	reconnected map[string]int
	cancelled   int
	states      []string
}

func (l *log) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *log) Delivered(e event.Delivered)       { l.note(func() { l.delivered = append(l.delivered, e) }) }
func (l *log) Handled(e event.Handled)           { l.note(func() { l.handled = append(l.handled, e) }) }
func (l *log) Retried(e event.Retried)           { l.note(func() { l.retried = append(l.retried, e) }) }
func (l *log) Parked(e event.Parked)             { l.note(func() { l.parked = append(l.parked, e) }) }
func (l *log) Released(int64, time.Duration)     { l.note(func() { l.released++ }) }
func (l *log) Acked(n int, _ time.Duration)      { l.note(func() { l.acked += n }) }
func (l *log) ConsumerCancelled(_ time.Duration) { l.note(func() { l.cancelled++ }) }

func (l *log) Republished(o broker.Outcome, _ time.Duration) { l.note(func() { l.republished[o]++ }) }

func (l *log) Reconnected(role string, _ time.Duration) { l.note(func() { l.reconnected[role]++ }) }

func (l *log) Blocked(string, bool, time.Duration) {}

func (l *log) BreakerChanged(state string, _ time.Duration) {
	l.note(func() { l.states = append(l.states, state) })
}

// read returns a number from the log.
func (l *log) read(f func(*log) int) (n int) {
	l.note(func() { n = f(l) })
	return n
}

// results counts the handlers' results of a kind.
func (l *log) results(r event.Result) int {
	return l.read(func(l *log) (n int) {
		for _, h := range l.handled {
			if h.Result == r {
				n++
			}
		}
		return n
	})
}

// settled counts the attempts at one message that found it applied, or applied it.
func (l *log) settled(seq int64) (n int) {
	for _, h := range l.handled {
		if h.Seq == seq && (h.Result == event.Applied || h.Result == event.Duplicate) {
			n++
		}
	}
	return n
}

// applied counts the messages that are applied for the first time; the caller holds the lock.
func applied(l *log) (n int) {
	for _, h := range l.handled {
		if h.Result == event.Applied {
			n++
		}
	}
	return n
}

func acked(l *log) int   { return l.acked }
func retried(l *log) int { return len(l.retried) }
func parked(l *log) int  { return len(l.parked) }

// bench is one service on a broker and in a database of its own.
type bench struct {
	*testing.T
	*rabbittest.Broker
	db      *postgres.DB
	base    *timebase.Base
	failing *workers.Failing
	service *workers.Service
	log     *log
	ended   chan error
	abort   context.CancelFunc
}

// options is what a test may change.
type options struct {
	workers.Config
	topology func(*topology.Settings)
	driver   func(*rabbittest.Broker) broker.Driver // nil is the broker's own
	initial  int64                                  // stock of the SKU
}

// prepare makes everything but the service's run. Two workers with four handlers each, three attempts, tiers of 50 ms and
// 100 ms, unless change says otherwise.
func prepare(t *testing.T, change func(*options)) *bench {
	t.Helper()
	o := options{initial: 1_000_000, topology: func(s *topology.Settings) {
		s.Tiers = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}
	}}
	o.Config = workers.Config{
		Base: timebase.New(), Version: "test", Workers: 2, Prefetch: 20, Concurrency: 4, AckBatch: 5, AckInterval: 20 * time.Millisecond,
		HandlerTimeout: 10 * time.Second, RetryPublishTimeout: 5 * time.Second, Failing: workers.NewFailing(service.Shares{}, 1),
		Budget: &retry.Budget{Attempts: 3, UnknownAttempts: 2},
	}
	if change != nil {
		change(&o)
	}
	b := &bench{
		T: t, Broker: rabbittest.New(t, o.topology), base: o.Base, failing: o.Failing, ended: make(chan error, 1),
		log: &log{republished: map[broker.Outcome]int{}, reconnected: map[string]int{}},
	}
	b.db = postgrestest.NewSized(t, postgres.Settings{SKUs: 1, InitialStock: o.initial}, 10)
	b.complete(&o)
	b.service = workers.New(o.Config)
	return b
}

// complete fills in what belongs to the test's own servers.
func (b *bench) complete(o *options) {
	o.Driver = b.Driver
	if o.driver != nil {
		o.Driver = o.driver(b.Broker)
	}
	o.Queue, o.Observer, o.Links, o.Breakers = b.Plan.Work, b.log, b.log, b.log
	o.Routes = workers.Routes{RetryExchange: b.Plan.Retry, ParkingExchange: b.Plan.DeadLetter, ParkingKey: b.Plan.ParkingKey}
	o.Inbox = inbox.NewStatement(b.db.Pool())
	for _, t := range b.Plan.Tiers {
		tier := retry.Tier{Name: t.Name}
		for _, q := range t.Queues {
			tier.Routes = append(tier.Routes, retry.Route{Key: q.RoutingKey, Delay: q.Delay})
		}
		o.Budget.Tiers = append(o.Budget.Tiers, tier)
	}
}

// start is prepare, and run.
func start(t *testing.T, change func(*options)) *bench {
	t.Helper()
	b := prepare(t, change)
	b.run()
	return b
}

func (b *bench) run() {
	ctx, abort := context.WithCancel(context.Background())
	b.abort = abort
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.ended <- b.service.Run(ctx)
	}()
	b.Cleanup(func() { // before the servers go
		abort()
		<-over
	})
}

// stop is the orderly stop.
func (b *bench) stop() {
	b.Helper()
	b.service.Stop()
	b.awaitEnd(rabbittest.Patience)
}

func (b *bench) awaitEnd(limit time.Duration) {
	b.Helper()
	select {
	case err := <-b.ended:
		if err != nil {
			b.Errorf("Run ended with %v", err)
		}
	case <-time.After(limit):
		b.Fatalf("Run has not ended after %v", limit)
	}
}

// eventually waits until a number of the log reaches at least want.
func (b *bench) eventually(what string, f func(*log) int, want int) {
	b.Helper()
	rabbittest.Eventually(b, what, func() bool { return b.log.read(f) >= want })
}

// message returns a sound message.
func (b *bench) message(seq int64) *broker.Message {
	now := b.base.Now()
	due := b.base.Wall(now)
	id := envelope.Identity{Run: "run", Seq: seq}.MessageID(b.base.Start()) // the same however often it is made
	o := envelope.Order{
		ID: id, Type: envelope.TypeOrderCreated, SchemaVersion: envelope.SchemaVersion, OccurredAt: due, Producer: "producer",
		CorrelationID: "req", CausationID: "cmd", Aggregate: envelope.Aggregate{Type: "order", ID: "order-1", Version: 1},
		Data: envelope.Data{SKU: postgres.SKU(0), Count: 1},
	}
	return &broker.Message{
		Exchange: b.Plan.Orders, RoutingKey: envelope.TypeOrderCreated, MessageID: id, CorrelationID: "req", Type: envelope.TypeOrderCreated,
		ContentType: "application/json", Timestamp: due, Body: o.AppendJSON(nil, 512),
		Headers: envelope.Headers{Run: "run", Seq: seq, ScheduledAt: b.base.Micros(now), SentAt: b.base.Micros(now), TraceParent: "00-a-b-01"},
	}
}

// messages returns n sound messages from seq 0.
func (b *bench) messages(n int64) (all []*broker.Message) {
	for seq := range n {
		all = append(all, b.message(seq))
	}
	return all
}

// publish sends messages and waits for their confirms.
func (b *bench) publish(all ...*broker.Message) {
	b.Helper()
	answers := make(chan broker.Settlement, len(all))
	ctx := rabbittest.Context(b)
	p, err := b.Driver.OpenPublisher(ctx, b.Name(), len(all), func(batch []broker.Settlement) {
		for _, s := range batch {
			answers <- s
		}
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(ctx) }()
	for i, m := range all {
		if err := p.Publish(ctx, uint64(i), m); err != nil {
			b.Fatal(err)
		}
	}
	for range all {
		if s := <-answers; s.Outcome != broker.Confirmed {
			b.Fatalf("message %d is %v (%s)", s.Token, s.Outcome, s.Reason)
		}
	}
}

// take consumes and acks n messages of a queue.
func (b *bench) take(queue string, n int) (all []broker.Delivery) {
	b.Helper()
	ctx := rabbittest.Context(b)
	c, err := b.Driver.OpenConsumer(ctx, b.Name(), broker.ConsumerOptions{Queue: queue, Tag: "take", Prefetch: 100})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	for len(all) < n {
		select {
		case batch := <-c.Deliveries():
			for _, d := range batch {
				all = append(all, *d)
				if err := c.Ack(d.Tag, false); err != nil {
					b.Fatal(err)
				}
			}
		case <-ctx.Done():
			b.Fatalf("%d of %d messages in queue %s", len(all), n, queue)
		}
	}
	return all
}

// effects returns how many effects each sequence has.
func (b *bench) effects() map[int64]int {
	b.Helper()
	found := map[int64]int{}
	err := b.db.Effects(rabbittest.Context(b), func(r postgres.EffectRow) error {
		found[r.Seq] += r.Applied + r.Refused
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// wantEffects fails unless each of n messages has exactly one effect.
func (b *bench) wantEffects(n int64) {
	b.Helper()
	found := b.effects()
	for seq := range n {
		if found[seq] != 1 {
			b.Errorf("message %d has %d effects", seq, found[seq])
		}
	}
	if len(found) != int(n) {
		b.Errorf("%d messages have effects, want %d", len(found), n)
	}
}

// wantReady fails unless the queue holds n ready messages; it is asked when nothing consumes any more.
func (b *bench) wantReady(queue string, n int) {
	b.Helper()
	got := -1
	rabbittest.Eventually(b, "the queue holds what it should", func() bool { // the broker learns of a closed channel a moment later
		got = b.Ready(b, queue)
		return got == n
	})
}

// always makes every attempt fail in one way.
func always(f *workers.Failing, s service.Shares) { f.Open(s) }
