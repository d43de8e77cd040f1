// Package inbox makes a message's effect happen once, however often the message is delivered: the claim of its id, the
// stock it moves and the line in the effect log are one transaction.
//
// Two strategies do the same with different traffic: NewTransaction speaks the plain transaction that most services
// use, NewStatement puts all of it into one SQL statement. Both run the same conformance tests. The package knows
// nothing of brokers, retries or acks: the worker acks after Apply has returned a result, and hands an error to
// postgres.Classify.
//
// Invariants: Applied and Refused are returned after COMMIT succeeded, never before. A claim without an effect, or an
// effect without a claim, is never committed. Refusing is a result like applying: it is claimed, logged, and its
// outgoing event has an id derived from the message's, the same on every attempt.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
)

// TypeStockRefused is the type of the outgoing event of a refusal.
const TypeStockRefused = "stock.refused"

// Names of the strategies, as profiles give them.
const (
	StrategyTransaction = "transaction"
	StrategyStatement   = "statement"
)

// ErrUnknownStrategy is returned by New for a name that is not a strategy's.
var ErrUnknownStrategy = errors.New("unknown inbox strategy")

// Claim is one message to apply.
type Claim struct {
	MessageID     string // a UUID; the key by which the effect happens once
	Seq           int64  // -1 for a message without a sequence of this run
	Instance      int    // the generator's
	SKU           string
	Count         int  // units to reserve, 1 to 2^31-1
	Refuse        bool // the failure model's wish: refuse whatever the stock
	OrderID       string
	CorrelationID string
}

// Inbox applies messages. It is safe for concurrent use, also for the same message.
type Inbox interface {
	// Apply claims the message and moves its stock. The result is Applied, Refused (no stock, or Claim.Refuse) or
	// Duplicate (the id was claimed before; nothing changed), each final. With an error there is no result, and
	// nothing was committed unless the error wraps postgres.ErrCommitUnknown. ctx bounds the whole.
	Apply(ctx context.Context, c Claim) (event.Result, error)
}

// New returns the inbox of a strategy by its name. The pool's connections have the run's schema as search_path.
func New(strategy string, pool *pgxpool.Pool) (Inbox, error) {
	switch strategy {
	case StrategyTransaction:
		return NewTransaction(pool), nil
	case StrategyStatement:
		return NewStatement(pool), nil
	default:
		return nil, fmt.Errorf("%w: %q; there are %q and %q", ErrUnknownStrategy, strategy, StrategyTransaction, StrategyStatement)
	}
}

// key is a claim's identity in the form that the tables hold.
type key struct {
	message pgtype.UUID
	refusal string // id of the outgoing event, should there be one
}

// key checks what the tables cannot hold, before a connection is taken. Its error wraps postgres.ErrInvalidInput, which
// is permanent.
func (c *Claim) key() (key, error) {
	if c.Count < 1 || c.Count > math.MaxInt32 {
		return key{}, fmt.Errorf("message %q, count %d: %w", c.MessageID, c.Count, postgres.ErrInvalidInput)
	}
	var id pgtype.UUID
	if err := id.Scan(c.MessageID); err != nil {
		return key{}, fmt.Errorf("message id %q is no UUID: %w", c.MessageID, postgres.ErrInvalidInput)
	}
	// From the canonical text, so that a spelling of the id in capitals derives the same.
	return key{message: id, refusal: envelope.DerivedID(id.String(), TypeStockRefused)}, nil
}
