package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Squeeze takes connections out of the pool until at most leave are left for others, waiting as long as ctx allows for those
// in use, and returns what gives them back. After an error all are given back.
func (db *DB) Squeeze(ctx context.Context, leave int) (release func(), err error) {
	var taken []*pgxpool.Conn
	release = func() {
		for _, conn := range taken {
			conn.Release()
		}
	}
	for range int(db.pool.Config().MaxConns) - max(1, leave) {
		conn, err := Acquire(ctx, db.pool)
		if err != nil {
			release()
			return nil, fmt.Errorf("squeeze the pool: %w", err)
		}
		taken = append(taken, conn)
	}
	return release, nil
}

// beside opens a transaction on a connection of its own, outside the pool, and runs one statement in it, which may wait. The
// server rolls it back when the connection ends, in whichever way.
func (db *DB) beside(ctx context.Context, options pgx.TxOptions, sql string, args ...any) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return nil, openError(db.uri, err)
	}
	tx, err := conn.BeginTx(ctx, options)
	if err == nil {
		_, err = tx.Exec(ctx, sql, args...)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// Snapshot is a transaction that keeps what it saw at its start: no row version that has died since may be removed, in any
// table of the database.
type Snapshot struct {
	db   *DB
	conn *pgx.Conn
}

// Horizon says what a snapshot held up.
type Horizon struct {
	Transactions int64 // begun since the oldest that it still sees as running
	DeadTuples   int64 // of the stock: left by a VACUUM that ran while it was held
}

// HoldSnapshot begins a REPEATABLE READ transaction and takes its snapshot.
func (db *DB) HoldSnapshot(ctx context.Context) (*Snapshot, error) {
	conn, err := db.beside(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, `select count(*) from stock`)
	if err != nil {
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	return &Snapshot{db, conn}, nil
}

// Release vacuums the stock, counts what that had to leave, and ends the transaction, whatever else fails.
func (s *Snapshot) Release(ctx context.Context) (Horizon, error) {
	h, err := s.horizon(ctx)
	return h, errors.Join(err, s.conn.Close(ctx))
}

const sqlHorizon = `
select (select age(backend_xmin)::bigint from pg_stat_activity where pid = $1),
       (select n_dead_tup from pg_stat_user_tables where schemaname = $2 and relname = 'stock')`

func (s *Snapshot) horizon(ctx context.Context) (h Horizon, err error) {
	if _, err = s.db.pool.Exec(ctx, `vacuum stock`); err == nil {
		err = s.db.pool.QueryRow(ctx, sqlHorizon, s.conn.PgConn().PID(), s.db.schema).Scan(&h.Transactions, &h.DeadTuples)
	}
	if err != nil {
		return Horizon{}, fmt.Errorf("see what a snapshot held up: %w", err)
	}
	return h, nil
}

// RowLock is a transaction that has one row of the stock locked.
type RowLock struct {
	db   *DB
	conn *pgx.Conn
}

// LockRow locks the stock of one SKU, waiting as long as ctx allows.
func (db *DB) LockRow(ctx context.Context, sku string) (*RowLock, error) {
	conn, err := db.beside(ctx, pgx.TxOptions{}, `select from stock where sku = $1 for update`, sku)
	if err != nil {
		return nil, fmt.Errorf("lock the stock of %s: %w", sku, err)
	}
	return &RowLock{db, conn}, nil
}

// sqlWaiting counts by what starts the name of every session of the schema, of whichever process. Behind the first one others wait in a queue for
// that one, so who waits for a lock at all is counted.
const sqlWaiting = `
select count(*) from pg_stat_activity where wait_event_type = 'Lock'
   and starts_with(application_name, split_part(current_setting('application_name'), ' ', 1) || ' ')`

// Release counts the run's sessions that wait for a lock, and ends the transaction, whatever else fails. Its own connection
// asks: the pool's may all be waiting.
func (l *RowLock) Release(ctx context.Context) (waiting int64, err error) {
	if err = l.conn.QueryRow(ctx, sqlWaiting).Scan(&waiting); err != nil {
		err = fmt.Errorf("see who waits for a lock: %w", err)
	}
	return waiting, errors.Join(err, l.conn.Close(ctx))
}
