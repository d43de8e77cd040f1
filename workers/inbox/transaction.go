package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/event"
	"spillway/internal/postgres"
)

// rollbackTimeout bounds the ROLLBACK of an attempt that failed. A connection that does not manage it is thrown away.
const rollbackTimeout = 2 * time.Second

type transaction struct{ pool *pgxpool.Pool }

// NewTransaction returns the inbox that runs one plain transaction per message in three round trips: BEGIN and claim,
// reserve, log and COMMIT. Steps that need no answer in between travel together; a failed one makes the server skip the
// rest of its trip, so COMMIT is never reached past an error.
func NewTransaction(pool *pgxpool.Pool) Inbox { return &transaction{pool: pool} }

// Apply implements Inbox.
func (t *transaction) Apply(ctx context.Context, c Claim) (event.Result, error) {
	k, err := c.key()
	if err != nil {
		return 0, err
	}
	conn, err := postgres.Acquire(ctx, t.pool)
	if err != nil {
		return 0, fmt.Errorf("apply message %s: %w", c.MessageID, err)
	}
	defer conn.Release() // a connection that is closed or still in a transaction is not used again
	result, err := t.apply(ctx, conn.Conn(), &c, k)
	if err != nil {
		rollback(ctx, conn.Conn())
		return 0, fmt.Errorf("apply message %s: %w", c.MessageID, err)
	}
	return result, nil
}

func (t *transaction) apply(ctx context.Context, conn *pgx.Conn, c *Claim, k key) (event.Result, error) {
	claimed, err := beginAndClaim(ctx, conn, c, k)
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	if !claimed {
		rollback(ctx, conn)
		return event.Duplicate, nil
	}
	reserved, err := reserve(ctx, conn, c)
	if err != nil {
		return 0, fmt.Errorf("reserve: %w", err)
	}
	return logAndCommit(ctx, conn, c, k, reserved)
}

// beginAndClaim opens the transaction and claims the id. false means that another delivery of the message holds it.
func beginAndClaim(ctx context.Context, conn *pgx.Conn, c *Claim, k key) (claimed bool, err error) {
	var first pgx.Batch
	first.Queue(sqlBegin)
	first.Queue(sqlClaim, k.message, c.Seq, c.Instance).Exec(func(tag pgconn.CommandTag) error {
		claimed = tag.RowsAffected() == 1
		return nil
	})
	return claimed, conn.SendBatch(ctx, &first).Close()
}

// reserve moves the stock. false is a refusal.
func reserve(ctx context.Context, conn *pgx.Conn, c *Claim) (bool, error) {
	if c.Refuse {
		return false, nil
	}
	tag, err := conn.Exec(ctx, sqlReserve, c.SKU, c.Count)
	return tag.RowsAffected() == 1, err
}

// logAndCommit appends the effect, writes the event of a refusal, and commits. The result counts only once COMMIT has
// been answered.
func logAndCommit(ctx context.Context, conn *pgx.Conn, c *Claim, k key, reserved bool) (event.Result, error) {
	var last pgx.Batch
	result := event.Applied
	if !reserved {
		result = event.Refused
		last.Queue(sqlRefuse, k.refusal, k.message, TypeStockRefused, c.OrderID, c.CorrelationID, c.SKU, c.Count, c.reason())
	}
	last.Queue(sqlLogEffect, c.Seq, c.Instance, k.message, kindOf(result), c.SKU, c.Count)
	aboutToCommit(ctx)
	last.Queue(sqlCommit).Exec(committed)
	if err := postgres.CommitError(conn.SendBatch(ctx, &last).Close()); err != nil {
		return 0, fmt.Errorf("log and commit: %w", err)
	}
	return result, nil
}

// committed looks at the answer to COMMIT, which is ROLLBACK, and no error, for a transaction that had failed before. The
// steps here cannot lead to it; it is checked since a commit believed is a message acked.
func committed(tag pgconn.CommandTag) error {
	if tag.String() != "COMMIT" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// rollback ends a transaction that came to nothing. Its own error is of no use: the connection then stays inside the
// transaction, the pool throws it away on release, and the server rolls back when it goes.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, sqlRollback)
}
