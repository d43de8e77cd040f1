package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/event"
	"spillway/internal/postgres"
)

type statement struct{ pool *pgxpool.Pool }

// NewStatement returns the inbox that does all of it in one statement and one round trip. The statement commits by
// itself, so an answer that is lost anywhere in it leaves the outcome open: postgres.ErrCommitUnknown.
func NewStatement(pool *pgxpool.Pool) Inbox { return &statement{pool: pool} }

// Apply implements Inbox.
func (s *statement) Apply(ctx context.Context, c Claim) (event.Result, error) {
	k, err := c.key()
	if err != nil {
		return 0, err
	}
	conn, err := postgres.Acquire(ctx, s.pool)
	if err != nil {
		return 0, fmt.Errorf("apply message %s: %w", c.MessageID, err)
	}
	defer conn.Release()
	result, err := s.apply(ctx, conn, &c, k)
	if err != nil {
		return 0, fmt.Errorf("apply message %s: %w", c.MessageID, postgres.CommitError(err))
	}
	return result, nil
}

func (s *statement) apply(ctx context.Context, conn *pgxpool.Conn, c *Claim, k key) (event.Result, error) {
	var kind string
	err := conn.QueryRow(ctx, sqlApply, k.message, c.Seq, c.Instance, c.SKU, c.Count, c.Refuse,
		k.refusal, TypeStockRefused, c.OrderID, c.CorrelationID, c.reason()).Scan(&kind)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // the id was claimed before
		return event.Duplicate, nil
	case err != nil:
		return 0, err
	case kind == kindReserved:
		return event.Applied, nil
	default:
		return event.Refused, nil
	}
}
