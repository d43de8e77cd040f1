package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

func TestASqueezedPoolHasAsManyConnectionsAsAreLeft(t *testing.T) {
	t.Parallel()
	db := postgrestest.NewSized(t, postgres.Settings{SKUs: 1}, 4)
	release, err := db.Squeeze(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if s := db.PoolStats(); s.Acquired != 3 || s.Max != 4 {
		t.Errorf("%d of %d connections are taken, want 3", s.Acquired, s.Max)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("the connection that is left: %v", err)
	}
	release()
	if s := db.PoolStats(); s.Acquired != 0 {
		t.Errorf("%d connections are taken after the release", s.Acquired)
	}
}

func TestASqueezeThatIsCutShortTakesNothing(t *testing.T) {
	t.Parallel()
	db := postgrestest.NewSized(t, postgres.Settings{SKUs: 1}, 3)
	used, err := postgres.Acquire(t.Context(), db.Pool())
	if err != nil {
		t.Fatal(err)
	}
	second, err := postgres.Acquire(t.Context(), db.Pool())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := db.Squeeze(ctx, 1); !errors.Is(err, postgres.ErrNoConnection) {
		t.Errorf("Squeeze returned %v", err)
	}
	used.Release()
	second.Release()
	await(t, "the connections to come back", func() bool { return db.PoolStats().Acquired == 0 })
}

func TestAHeldSnapshotKeepsDeadTuples(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 100, InitialStock: 5})
	held, err := db.HoldSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const writes = 5
	for range writes {
		exec(t, db, `update stock set reserved = reserved + 1`)
	}
	h, err := held.Release(t.Context())
	if err != nil || h.Transactions < writes || h.DeadTuples < 100 {
		t.Errorf("%+v, %v; want at least %d transactions and 100 dead tuples", h, err, writes)
	}
}

func TestALockedRowIsWaitedFor(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 2, InitialStock: 5})
	lock, err := db.LockRow(t.Context(), postgres.SKU(0))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, `update stock set reserved = 1 where sku = '`+postgres.SKU(1)+`'`)
	waited := make(chan error, 1)
	go func() {
		_, err := db.Pool().Exec(context.Background(), `update stock set reserved = 1 where sku = $1`, postgres.SKU(0))
		waited <- err
	}()
	await(t, "the other to wait", func() bool {
		var n int
		err := db.Pool().QueryRow(t.Context(), `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = current_setting('application_name')`).Scan(&n)
		return err == nil && n > 0
	})
	if n, err := lock.Release(t.Context()); err != nil || n != 1 {
		t.Errorf("%d were waiting, %v; want 1", n, err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}
