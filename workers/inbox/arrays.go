package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Arrays are messages as the statement of the batch strategy takes them. A loop that sends them ready-made shows what that
// strategy would do if gathering messages and handing results back cost nothing: it is what NewBatch is held against, and
// no way to apply messages.
type Arrays struct{ columns columns }

// ErrNotApplied is returned by Arrays.Send when the statement did not apply every message.
var ErrNotApplied = errors.New("not every message was applied")

// NewArrays turns claims with ids of their own into arrays. Its error wraps postgres.ErrInvalidInput.
func NewArrays(claims []Claim) (*Arrays, error) {
	calls := make([]*call, len(claims))
	for i, c := range claims {
		k, err := c.key()
		if err != nil {
			return nil, err
		}
		calls[i] = &call{claim: c, key: k}
	}
	return &Arrays{columnsOf(calls)}, nil
}

// Len returns the number of messages.
func (a *Arrays) Len() int { return len(a.columns.ids) }

// Send applies the messages in one statement on a connection of the pool, nothing retried or told apart. Arrays may be
// sent once: afterwards their ids are claimed.
func (a *Arrays) Send(ctx context.Context, pool *pgxpool.Pool) error {
	c := &a.columns
	var applied, refused []int64
	err := pool.QueryRow(ctx, sqlApplyBatch, c.ids, c.seqs, c.instances, c.skus, c.counts, c.refuse, c.refusals,
		c.orders, c.correlations, TypeStockRefused).Scan(&applied, &refused)
	if err == nil && len(applied) != a.Len() {
		err = fmt.Errorf("%w: %d of %d", ErrNotApplied, len(applied), a.Len())
	}
	return err
}
