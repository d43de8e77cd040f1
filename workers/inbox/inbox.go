// Package inbox makes a message's effect happen once, however often the message is delivered: the claim of its id, the
// stock it moves and the line in the effect log are one transaction.
//
// Three strategies do the same with different traffic: NewTransaction speaks the plain transaction that most services
// use, NewStatement puts all of it into one SQL statement, NewBatch puts many messages into one statement. All run the
// same conformance tests. None is the absence of all this, for runs without a database. The package knows nothing of brokers, retries or acks: the worker acks after Apply has returned
// a result, and hands an error to postgres.Classify.
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
	"strings"
	"unicode/utf8"

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
	StrategyBatch       = "batch"
	StrategyNone        = "none"
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

// Option changes a default of New.
type Option func(*options)

type options struct{ batch BatchOptions }

// WithBatch tunes the batch strategy. The others do not look at it.
func WithBatch(o BatchOptions) Option { return func(all *options) { all.batch = o } }

// New returns the inbox of a strategy by its name; hand it to Close when the last Apply has returned. The pool's
// connections have the run's schema as search_path. StrategyNone uses no pool; it may be nil.
func New(strategy string, pool *pgxpool.Pool, with ...Option) (Inbox, error) {
	var o options
	for _, set := range with {
		set(&o)
	}
	switch strategy {
	case StrategyTransaction:
		return NewTransaction(pool), nil
	case StrategyStatement:
		return NewStatement(pool), nil
	case StrategyBatch:
		return NewBatch(pool, o.batch), nil
	case StrategyNone:
		return None{}, nil
	default:
		return nil, fmt.Errorf("%w: %q; there are %q, %q, %q and %q",
			ErrUnknownStrategy, strategy, StrategyTransaction, StrategyStatement, StrategyBatch, StrategyNone)
	}
}

// Close ends what an inbox of New runs by itself, within ctx; see Batch.Close. An inbox that runs nothing has nothing to
// close. The pool is closed after it.
func Close(ctx context.Context, i Inbox) error {
	if c, ok := i.(interface {
		Close(ctx context.Context) error
	}); ok {
		return c.Close(ctx)
	}
	return nil
}

// key is a claim's identity in the form that the tables hold.
type key struct {
	message pgtype.UUID
	refusal pgtype.UUID // id of the outgoing event, should there be one
}

// key checks what the tables cannot hold, before a connection is taken. Its error wraps postgres.ErrInvalidInput, which
// is permanent.
func (c *Claim) key() (k key, err error) {
	if c.Count < 1 || c.Count > math.MaxInt32 {
		return key{}, fmt.Errorf("message %q, count %d: %w", c.MessageID, c.Count, postgres.ErrInvalidInput)
	}
	if c.Instance < 0 || c.Instance > math.MaxInt32 {
		return key{}, fmt.Errorf("message %q, instance %d: %w", c.MessageID, c.Instance, postgres.ErrInvalidInput)
	}
	for _, text := range []string{c.SKU, c.OrderID, c.CorrelationID} {
		if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
			return key{}, fmt.Errorf("message %q, text %q: %w", c.MessageID, text, postgres.ErrInvalidInput)
		}
	}
	id, canonical := envelope.ParseUUID(c.MessageID)
	k.message.Bytes, k.message.Valid = id, canonical
	if !canonical { // of somebody else, who may spell it in another way
		if err := k.message.Scan(c.MessageID); err != nil {
			return key{}, fmt.Errorf("message id %q is no UUID: %w", c.MessageID, postgres.ErrInvalidInput)
		}
	}
	k.refusal.Bytes, k.refusal.Valid = envelope.UUID(k.message.Bytes).Derived(TypeStockRefused), true
	return k, nil
}
