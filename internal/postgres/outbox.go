package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Names of the tables that a relay publishes from.
const (
	OutboxOrders    = "outbox"           // the orders service's events
	OutboxInventory = "inventory_outbox" // the inventory service's refusals
)

// OutboxRow is what the orders' outbox holds of one event.
type OutboxRow struct {
	Seq      int64
	Instance int
	Sent     bool // marked: the broker confirmed it
	Tries    int  // publishes that were answered, but not by a confirm
}

// Orders streams the sequence and instance of every order, in no order. Memory does not grow with the number of rows. An
// error of each stops the stream and is returned.
func (db *DB) Orders(ctx context.Context, each func(seq int64, instance int) error) error {
	var seq int64
	var instance int
	return db.stream(ctx, "orders", `select seq, instance from orders`, []any{&seq, &instance},
		func() error { return each(seq, instance) })
}

// Outbox streams one row per event in the orders' outbox, in no order. Memory does not grow with the number of rows. An
// error of each stops the stream and is returned.
func (db *DB) Outbox(ctx context.Context, each func(OutboxRow) error) error {
	var row OutboxRow
	targets := []any{&row.Seq, &row.Instance, &row.Sent, &row.Tries}
	return db.stream(ctx, "outbox", `select seq, instance, sent_at is not null, tries from outbox`, targets,
		func() error { return each(row) })
}

// OutboxState is what one outbox holds as a whole.
type OutboxState struct {
	Rows   int64
	Unsent int64
	// Skipped are unsent rows for which no relay noted an answer although rows written later by more than the grace are marked
	// sent. Relays that work side by side overtake each other by a batch, never by much; a row that was skipped stays.
	Skipped int64
	// Oldest is the age of the oldest unsent row, by the server's clock; 0 when there is none.
	Oldest time.Duration
}

// sqlOutboxState takes the grace in microseconds.
const sqlOutboxState = `
with newest as (select max(created_at) - $1 * interval '1 microsecond' as sent from %[1]s where sent_at is not null)
select count(*),
       count(*) filter (where sent_at is null),
       count(*) filter (where sent_at is null and tries = 0 and created_at < (select sent from newest)),
       coalesce(extract(epoch from clock_timestamp() - min(created_at) filter (where sent_at is null)) * 1e6, 0)::bigint
  from %[1]s`

// OutboxState reads one outbox as a whole; it scans the table. The table is OutboxOrders or OutboxInventory.
func (db *DB) OutboxState(ctx context.Context, table string, grace time.Duration) (OutboxState, error) {
	var s OutboxState
	var oldest int64
	query := fmt.Sprintf(sqlOutboxState, pgx.Identifier{table}.Sanitize())
	if err := db.pool.QueryRow(ctx, query, grace.Microseconds()).Scan(&s.Rows, &s.Unsent, &s.Skipped, &oldest); err != nil {
		return OutboxState{}, fmt.Errorf("read the state of %s: %w", table, err)
	}
	s.Oldest = time.Duration(oldest) * time.Microsecond
	return s, nil
}

// OutboxPending returns how many rows of an outbox are unsent. It reads the index of the unsent rows alone, so its cost
// is that of the backlog, and of what was sent since the last vacuum.
func (db *DB) OutboxPending(ctx context.Context, table string) (int64, error) {
	var n int64
	query := `select count(*) from ` + pgx.Identifier{table}.Sanitize() + ` where sent_at is null`
	if err := db.pool.QueryRow(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the unsent rows of %s: %w", table, err)
	}
	return n, nil
}
