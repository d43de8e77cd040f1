package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/event"
	"spillway/internal/postgres"
)

// Defaults and bounds of BatchOptions.
const (
	// DefaultBatchSize is where one statement's fixed cost has become small against that of its rows.
	DefaultBatchSize = 256
	// MaxBatchSize bounds what one commit holds: its locks, its memory on the server, and what a failure sends back.
	MaxBatchSize = 10_000
	// DefaultBatchLanes lets one batch be gathered and sent while another waits for its commit.
	DefaultBatchLanes = 2
)

// BatchOptions tunes NewBatch. The zero value is ready to use.
type BatchOptions struct {
	// Size is the most messages in one commit, 1 to MaxBatchSize; more is cut to that. 0 or less is DefaultBatchSize.
	// More than the callers that wait at once is never reached.
	Size int
	// Linger is how long the oldest message waits for others before an incomplete batch goes. 0 or less: not at all, it
	// goes as soon as a lane is free, and batches grow by what arrives while all lanes are busy.
	Linger time.Duration
	// Lanes is how many batches are under way at once, each on a connection of its own, so the pool needs as many. 0 or
	// less is DefaultBatchLanes.
	Lanes int
}

func (o BatchOptions) withDefaults() BatchOptions {
	if o.Size < 1 {
		o.Size = DefaultBatchSize
	}
	if o.Lanes < 1 {
		o.Lanes = DefaultBatchLanes
	}
	o.Size, o.Linger = min(o.Size, MaxBatchSize), max(o.Linger, 0)
	return o
}

// Why a wait ended without a result.
var (
	// ErrClosed is returned by Apply after Close: nothing was sent. It comes with postgres.ErrNoConnection, so it is
	// transient.
	ErrClosed = errors.New("the inbox is closed")
	// errAborted ends the batches that are under way when Close runs out of time.
	errAborted = errors.New("the inbox was closed while the batch was under way")
	// errAbandoned ends a batch that nobody waits for any more.
	errAbandoned = errors.New("every caller of the batch has gone")
)

// Batch is the inbox that gathers the messages of many callers into one statement and one commit. Callers block in Apply
// until their message's batch is committed, so it takes many concurrent callers to fill one. Batch is safe for concurrent
// use; its owner closes it.
//
// It has no goroutines of its own while nothing waits: a lane starts when a batch is due and ends when none is.
type Batch struct {
	pool  *pgxpool.Pool
	o     BatchOptions
	ctx   context.Context // ends all lanes' work; only Close cancels it
	abort context.CancelCauseFunc
	idle  chan struct{} // closed when Close has been called and the last lane has ended

	mu       sync.Mutex
	waiting  []*call     // in order of arrival; guarded by mu
	lanes    int         // running; guarded by mu
	closed   bool        // guarded by mu
	timer    *time.Timer // looks at the queue when its head has lingered; nil until first used; guarded by mu
	watching bool        // the timer is set; guarded by mu
}

// call is one caller's message.
type call struct {
	claim   Claim
	key     key
	arrived time.Time
	flight  *flight // nil while it waits in the queue; guarded by Batch.mu
	// parted is set by whoever ends the call first: the lane with an outcome, or the caller by going.
	parted atomic.Bool
	done   chan outcome // room for one, so that no lane waits for a caller
}

// outcomes are channels of calls that are over. To make one for each message took a tenth of what a call costs.
var outcomes = sync.Pool{New: func() any { return make(chan outcome, 1) }}

// outcome is what Apply returns.
type outcome struct {
	result event.Result
	err    error
}

// NewBatch returns an inbox that applies many messages in one commit and one round trip. One that the database refuses is
// isolated by splitting, so its neighbours apply; it alone gets the permanent error. A transient failure, and
// postgres.ErrCommitUnknown, is every message's of the batch.
//
// Within a batch stock goes to the earlier arrival; a message that is too large for what is left is refused, and a later
// smaller one may still fit, as if they had come one by one.
func NewBatch(pool *pgxpool.Pool, o BatchOptions) *Batch {
	ctx, abort := context.WithCancelCause(context.Background())
	return &Batch{pool: pool, o: o.withDefaults(), ctx: ctx, abort: abort, idle: make(chan struct{})}
}

// Apply implements Inbox. A ctx that ends while the message waits takes it out: nothing was sent. One that ends while its
// batch is under way gets postgres.ErrCommitUnknown at once, unless the result is there; the batch goes on for as long as
// any of its callers waits.
func (b *Batch) Apply(ctx context.Context, c Claim) (event.Result, error) {
	k, err := c.key()
	if err != nil {
		return 0, err
	}
	one := &call{claim: c, key: k, done: outcomes.Get().(chan outcome)}
	if err := b.enter(ctx, one); err != nil {
		return 0, fmt.Errorf("apply message %s: %w", c.MessageID, err)
	}
	o := b.await(ctx, one)
	if o.err != nil {
		return 0, fmt.Errorf("apply message %s: %w", c.MessageID, o.err)
	}
	return o.result, nil
}

// enter puts the call into the queue.
func (b *Batch) enter(ctx context.Context, one *call) error {
	if ctx.Err() != nil {
		return notSent(context.Cause(ctx))
	}
	if b.o.Linger > 0 {
		one.arrived = time.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return notSent(ErrClosed)
	}
	b.waiting = append(b.waiting, one)
	b.dispatch()
	return nil
}

// await returns the call's outcome, or what its caller may say when ctx ends before there is one.
func (b *Batch) await(ctx context.Context, one *call) outcome {
	select {
	case o := <-one.done:
		outcomes.Put(one.done) // empty, and a lane answers a call once
		return o
	case <-ctx.Done():
	}
	switch f := b.withdraw(one); {
	case f == nil:
		return outcome{err: notSent(context.Cause(ctx))}
	case one.parted.CompareAndSwap(false, true):
		f.part()
		return outcome{err: fmt.Errorf("%w: %w", postgres.ErrCommitUnknown, context.Cause(ctx))}
	default: // the lane was first, and the outcome is there or about to be
		return <-one.done
	}
}

// notSent marks an error from before anything was sent.
func notSent(err error) error { return fmt.Errorf("%w: %w", postgres.ErrNoConnection, err) }

// Close refuses new messages, sends what waits without lingering, and returns when the last batch has ended. When ctx
// ends before, the batches under way are cut off, their callers get postgres.ErrCommitUnknown, those that still wait get
// postgres.ErrNoConnection, and Close returns ctx's cause. It may be called more than once.
func (b *Batch) Close(ctx context.Context) error {
	b.shut()
	defer b.abort(ErrClosed)
	select {
	case <-b.idle:
		return nil
	case <-ctx.Done():
	}
	b.abort(errAborted)
	<-b.idle // the driver returns at once from a context that has ended
	return fmt.Errorf("close the inbox: %w", context.Cause(ctx))
}
