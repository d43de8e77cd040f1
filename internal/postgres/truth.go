package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The audit reads what the database really holds, after the workers have stopped. Call Claims before Effects: a
// transaction that an abandoned backend commits between the two then shows as an effect of an id not seen among the
// claims, never as a claim that lacks its effect.

// EffectRow is what the effect log holds of one message.
type EffectRow struct {
	Seq      int64 // -1 gathers the messages that carried no sequence, one row per instance
	Instance int
	Applied  int // rows of kind "reserved"; two or more are duplicate effects
	Refused  int // rows of kind "refused"
}

// auditMemory is what the server may sort and hash with in one audit before it spills to disk: enough for about a
// million messages, small enough for any server.
const auditMemory = "64MB"

// sqlEffects counts each message's effects. The server groups and sorts, on disk when it must; the client sees a stream.
const sqlEffects = `
select seq, instance, count(*) filter (where kind = 'reserved'), count(*) filter (where kind = 'refused')
  from effect_log
 group by seq, instance
 order by instance, seq`

// Effects streams one row per message in the effect log, by instance, then sequence. Memory does not grow with the
// number of rows. An error of each stops the stream and is returned.
func (db *DB) Effects(ctx context.Context, each func(EffectRow) error) error {
	var row EffectRow
	targets := []any{&row.Seq, &row.Instance, &row.Applied, &row.Refused}
	return db.stream(ctx, "effects", sqlEffects, targets, func() error { return each(row) })
}

// Claims streams the sequence and instance of every id in the inbox, in no order. Memory does not grow with the number
// of rows. An error of each stops the stream and is returned.
func (db *DB) Claims(ctx context.Context, each func(seq int64, instance int) error) error {
	var seq int64
	var instance int
	return db.stream(ctx, "claims", `select seq, instance from inbox`, []any{&seq, &instance},
		func() error { return each(seq, instance) })
}

// OutboxRows returns how many outgoing events were written.
func (db *DB) OutboxRows(ctx context.Context) (int64, error) {
	var n int64
	if err := db.pool.QueryRow(ctx, `select count(*) from inventory_outbox`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count outbox rows: %w", err)
	}
	return n, nil
}

// stream runs a query in a transaction of its own and calls each after scanning each row into the targets.
func (db *DB) stream(ctx context.Context, what, query string, targets []any, each func() error) error {
	if db.schema == "" {
		return ErrNoSchema
	}
	err := pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// Compiling such a query takes longer than it saves, and on a small machine shows as a pause.
		if _, err := tx.Exec(ctx, "set local work_mem = '"+auditMemory+"'; set local jit = off"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, targets, each)
		return err
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}
