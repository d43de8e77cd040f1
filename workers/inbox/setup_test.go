package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/workers/inbox"
)

// strategies are all that must pass the conformance tests.
var strategies = map[string]func(testing.TB, *pgxpool.Pool) inbox.Inbox{
	inbox.StrategyTransaction: func(_ testing.TB, pool *pgxpool.Pool) inbox.Inbox { return inbox.NewTransaction(pool) },
	inbox.StrategyStatement:   func(_ testing.TB, pool *pgxpool.Pool) inbox.Inbox { return inbox.NewStatement(pool) },
	inbox.StrategyBatch: func(tb testing.TB, pool *pgxpool.Pool) inbox.Inbox {
		tb.Helper()
		return newBatch(tb, pool, inbox.BatchOptions{})
	},
}

// newBatch returns a batch inbox that is closed when the test ends.
func newBatch(tb testing.TB, pool *pgxpool.Pool, o inbox.BatchOptions) *inbox.Batch {
	tb.Helper()
	b := inbox.NewBatch(pool, o)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), awaitLimit) // the test's own is done by now
		defer cancel()
		if err := b.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// bench is one test's inbox and database.
type bench struct {
	*testing.T
	db    *postgres.DB
	inbox inbox.Inbox
}

// conform runs a test once per strategy, each in a schema of its own.
func conform(t *testing.T, s postgres.Settings, test func(*bench)) {
	t.Helper()
	for name, build := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.NewSized(t, s, 10)
			test(&bench{T: t, db: db, inbox: build(t, db.Pool())})
		})
	}
}

// claim returns the claim of the seq-th message: 2 units of SKU 0.
func claim(seq int64) inbox.Claim {
	id := envelope.Identity{Run: "test", Seq: seq}
	return inbox.Claim{
		MessageID: id.MessageID(time.UnixMilli(1)), Seq: seq, SKU: postgres.SKU(0), Count: 2,
		OrderID: "order-1", CorrelationID: "correlation-1",
	}
}

// want applies a claim and checks its result.
func (b *bench) want(c inbox.Claim, want event.Result) {
	b.Helper()
	got, err := b.inbox.Apply(b.Context(), c)
	if err != nil || got != want {
		b.Fatalf("message %d is %v, %v; want %v", c.Seq, got, err, want)
	}
}

// state is what the tables hold in all.
type state struct {
	claims, reservedRows, refusedRows, events int
	available, reserved                       int64
}

func (b *bench) state() (s state) {
	b.Helper()
	const query = `
select (select count(*) from inbox),
       (select count(*) from effect_log where kind = 'reserved'),
       (select count(*) from effect_log where kind = 'refused'),
       (select count(*) from inventory_outbox),
       (select sum(available)::bigint from stock),
       (select sum(reserved)::bigint from stock)`
	err := b.db.Pool().QueryRow(b.Context(), query).
		Scan(&s.claims, &s.reservedRows, &s.refusedRows, &s.events, &s.available, &s.reserved)
	if err != nil {
		b.Fatalf("read the state: %v", err)
	}
	return s
}

func (b *bench) wantState(want state) {
	b.Helper()
	if got := b.state(); got != want {
		b.Errorf("the tables hold %+v, want %+v", got, want)
	}
}

// lockStock holds the row of SKU 0, so that an Apply stops after its claim. The release may be called twice.
func (b *bench) lockStock() (release func()) {
	b.Helper()
	tx, err := b.db.Pool().Begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Exec(b.Context(), `select from stock where sku = $1 for update`, postgres.SKU(0)); err != nil {
		b.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(b.Context())) }
	b.Cleanup(release)
	return release
}

// blocked returns the backends of this test that wait for a lock.
func (b *bench) blocked() []uint32 {
	b.Helper()
	const query = `select pid from pg_stat_activity where starts_with(application_name, $1) and wait_event_type = 'Lock'`
	rows, err := b.db.Pool().Query(b.Context(), query, b.db.Schema()+" ")
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
	if err != nil {
		b.Fatal(err)
	}
	return pids
}

// awaitLimit bounds a wait for a condition; it is far above what any takes.
const awaitLimit = 20 * time.Second

// await waits for a condition of the server, which has no signal to wait on.
func (b *bench) await(what string, condition func() bool) {
	b.Helper()
	for deadline := time.Now().Add(awaitLimit); !condition(); {
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// outcome is what a call of Apply returned.
type outcome struct {
	result event.Result
	err    error
}

// start calls Apply in the background.
func (b *bench) start(ctx context.Context, c inbox.Claim) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := b.inbox.Apply(ctx, c)
		done <- outcome{result, err}
	}()
	return done
}
