package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

// wantClass checks code and class of an error that a real server gave.
func wantClass(t *testing.T, err error, code string, class postgres.Class) {
	t.Helper()
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || state.SQLState() != code {
		t.Fatalf("the server gave %v, want code %s", err, code)
	}
	if got := postgres.Classify(err); got != class {
		t.Errorf("Classify(%v) = %v, want %v", err, got, class)
	}
}

func TestErrorsOfARealServer(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 2, InitialStock: 10})
	const insert = `insert into inbox (message_id, seq, instance) values ('00000000-0000-7000-8000-000000000001', 0, 0)`
	for _, c := range []struct {
		name, setup, sql, code string
		class                  postgres.Class
	}{
		{"a second row under one id is permanent", insert, insert, "23505", postgres.Permanent},
		{"stock below zero is permanent", "", `update stock set available = available - 11`, "23514", postgres.Permanent},
		{"text that is no UUID is permanent", "", `select 'x'::uuid`, "22P02", postgres.Permanent},
		{"a statement time-out is transient", "set local statement_timeout = 1", `select pg_sleep(60)`, "57014", postgres.Transient},
		{"a missing table is unknown", "", `select * from no_such_table`, "42P01", postgres.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := pgx.BeginFunc(t.Context(), db.Pool(), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), c.setup); err != nil {
					return fmt.Errorf("set up: %w", err)
				}
				_, err := tx.Exec(t.Context(), c.sql)
				return err
			})
			wantClass(t, err, c.code, c.class)
		})
	}
}

func TestALockTimeoutIsTransient(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 1, InitialStock: 10})
	holder := begin(t, db.Pool())
	update(t, holder, 0)
	waiter := begin(t, db.Pool())
	if _, err := waiter.Exec(t.Context(), `set local lock_timeout = 1`); err != nil {
		t.Fatal(err)
	}
	_, err := waiter.Exec(t.Context(), `update stock set reserved = 1 where sku = $1`, postgres.SKU(0))
	wantClass(t, err, "55P03", postgres.Transient)
}

func TestADeadlockIsTransient(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 2, InitialStock: 10})
	one, two := begin(t, db.Pool()), begin(t, db.Pool())
	update(t, one, 0)
	update(t, two, 1)
	crossed := make(chan error, 1)
	go func() { crossed <- tryUpdate(t.Context(), one, 1) }()
	second := tryUpdate(t.Context(), two, 0) // the server ends one of the two, whichever it likes
	if second != nil {
		_ = two.Rollback(t.Context()) // lets the other go on
	}
	if err := errors.Join(second, <-crossed); err == nil {
		t.Fatal("neither transaction was ended")
	} else {
		wantClass(t, err, "40P01", postgres.Transient)
	}
}

func TestATerminatedBackendIsTransient(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	tx := begin(t, db.Pool())
	if _, err := db.Pool().Exec(t.Context(), `select pg_terminate_backend($1)`, tx.Conn().PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	_, err := tx.Exec(t.Context(), `select pg_sleep(60)`)
	wantClass(t, err, "57P01", postgres.Transient)
}

func TestAClosedPoolIsTransient(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Config{URI: postgrestest.URI(t)})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	_, err = postgres.Acquire(t.Context(), db.Pool())
	if got := postgres.Classify(err); got != postgres.Transient {
		t.Errorf("Classify(%v) = %v, want transient", err, got)
	}
}

func TestAHandlerOutOfTimeIsTransient(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := db.Pool().Exec(ctx, `select pg_sleep(60)`)
	if got := postgres.Classify(err); got != postgres.Transient {
		t.Errorf("Classify(%v) = %v, want transient", err, got)
	}
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The test's own context is done when the rollback runs.
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

func update(t *testing.T, tx pgx.Tx, sku int) {
	t.Helper()
	if err := tryUpdate(t.Context(), tx, sku); err != nil {
		t.Fatal(err)
	}
}

func tryUpdate(ctx context.Context, tx pgx.Tx, sku int) error {
	_, err := tx.Exec(ctx, `update stock set reserved = reserved + 1 where sku = $1`, postgres.SKU(sku))
	return err
}
