package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// RefusalRow is a refusal in the effect log and its outgoing event in the inventory's outbox, which are written in one
// transaction. Either may be missing where that was broken.
type RefusalRow struct {
	Event   [16]byte // id of the event's row; of no meaning without one
	Written bool     // there is such a row
	Sent    bool     // it is marked: the broker confirmed the event
	Refused bool     // the effect log holds a refusal of the message that the event is about
}

// sqlRefusals joins in one statement, so both sides are of one moment.
const sqlRefusals = `
select o.id, o.id is not null, o.sent_at is not null, e.message_id is not null
  from (select distinct message_id from effect_log where kind = 'refused') e
  full join inventory_outbox o on o.message_id = e.message_id`

// Refusals streams every refusal and every outgoing event, in no order. Memory does not grow with their number. An error
// of each stops the stream and is returned.
func (db *DB) Refusals(ctx context.Context, each func(RefusalRow) error) error {
	var row RefusalRow
	var id pgtype.UUID
	targets := []any{&id, &row.Written, &row.Sent, &row.Refused}
	return db.stream(ctx, "refusals", sqlRefusals, targets, func() error {
		row.Event = id.Bytes
		return each(row)
	})
}

// Refused returns how many messages have a refusal in the effect log.
func (db *DB) Refused(ctx context.Context) (int64, error) {
	var n int64
	query := `select count(distinct message_id) from effect_log where kind = 'refused'`
	if err := db.pool.QueryRow(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("count refused messages: %w", err)
	}
	return n, nil
}
