package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"spillway/internal/broker"
)

// The steps around a claim. A relay need not wait for the disk when it commits: a mark that a crash of the server takes
// back is a row published twice, which is allowed, and never a row skipped. The planner is kept to the index, since a plan
// that was made while the table was empty would read all of it later.
const (
	sqlBegin    = `begin`
	sqlNoSync   = `set local synchronous_commit = off`
	sqlNoSeq    = `set local enable_seqscan = off`
	sqlNoBitmap = `set local enable_bitmapscan = off`
	sqlNow      = `select now()`
	sqlCommit   = `commit`
	sqlRollback = `rollback`
)

// sqlMark marks rows sent, sqlPostpone lets them rest. Both leave a row alone that is marked already: another relay may
// have published it again after a claim of this one was lost.
const (
	sqlMark     = ` set sent_at = clock_timestamp() where id = any($1::uuid[]) and sent_at is null`
	sqlPostpone = ` as t set tries = t.tries + 1, due = clock_timestamp() + d.rest * interval '1 microsecond'
 from unnest($1::uuid[], $2::bigint[]) as d(id, rest) where t.id = d.id and t.sent_at is null`
)

// claim opens a transaction and takes at most len(into) rows that fell due at or after from. now is when the transaction
// began, by the server's clock. An empty claim has no transaction left open.
func claim(ctx context.Context, conn *pgx.Conn, s *Source, from time.Time, into []row) (n int, now time.Time, err error) {
	var b pgx.Batch
	for _, step := range [...]string{sqlBegin, sqlNoSync, sqlNoSeq, sqlNoBitmap} {
		b.Queue(step)
	}
	b.Queue(sqlNow).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
	b.Queue(s.claim, from, len(into)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := s.scan(s, rows, &into[n]); err != nil {
				return err
			}
			n++
		}
		return rows.Err()
	})
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return 0, time.Time{}, err
	}
	if n == 0 {
		_, err = conn.Exec(ctx, sqlRollback)
	}
	return n, now, err
}

// verdicts sorts the rows of a batch by what is to be done with them.
type verdicts struct {
	confirmed []id
	rest      []id // answered otherwise
	restFor   []int64
}

// judge fills v from rows. Rows that were not published are in neither list: they are as they were.
func (v *verdicts) judge(rows []row, draw func() float64) {
	v.confirmed, v.rest, v.restFor = v.confirmed[:0], v.rest[:0], v.restFor[:0]
	for i := range rows {
		switch r := &rows[i]; r.outcome {
		case 0:
		case broker.Confirmed:
			v.confirmed = append(v.confirmed, r.id)
		default:
			v.rest = append(v.rest, r.id)
			v.restFor = append(v.restFor, restFor(r.outcome, r.tries, draw()).Microseconds())
		}
	}
}

// A returned message waits for a person to bind a queue, so its row rests long. One that was nacked or not answered may
// be welcome in a moment.
var (
	restReturned = broker.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	restOther    = broker.Backoff{Min: 20 * time.Millisecond, Max: 2 * time.Second}
)

func restFor(o broker.Outcome, tries int, draw float64) time.Duration {
	if o == broker.Returned {
		return restReturned.Delay(tries, draw)
	}
	return restOther.Delay(tries, draw)
}

// settle writes the verdicts, one statement for each kind, in one round trip. Inside a claim it ends the claim's
// transaction; outside it is one of its own.
func (v *verdicts) settle(ctx context.Context, conn *pgx.Conn, s *Source) error {
	var b pgx.Batch
	inside := conn.PgConn().TxStatus() != 'I'
	if !inside {
		b.Queue(sqlBegin)
	}
	if len(v.confirmed) > 0 {
		b.Queue("update "+s.table+sqlMark, v.confirmed)
	}
	if len(v.rest) > 0 {
		b.Queue("update "+s.table+sqlPostpone, v.rest, v.restFor)
	}
	b.Queue(sqlCommit).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	return conn.SendBatch(ctx, &b).Close()
}
