package experiment

import (
	"context"
	"sync"
	"time"

	"spillway/internal/ledger"
	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/internal/result"
	"spillway/workers/inbox"
)

// forgetting lets the inbox forget, and remembers for the audit which claims it has let go: a claim without an effect must
// be found also when it is gone.
type forgetting struct {
	db        *postgres.DB // a pool of its own: the purge is no handler
	retention *inbox.Retention

	mu   sync.Mutex
	gone bits // by sequence; guarded by mu
}

// partitionOf returns the width of the inbox's partitions, 0 for an inbox in one piece.
func partitionOf(r *profile.Retention) time.Duration {
	if r.Policy == inbox.RetainPartitions {
		return r.Every
	}
	return 0
}

// newForgetting makes what purges the inbox; nil in a run whose inbox forgets nothing.
func (r *run) newForgetting() (*forgetting, error) {
	cfg := &r.o.Profile.Inbox.Retention
	if cfg.Policy == inbox.RetainAll {
		return nil, nil //nolint:nilnil // no retention is a value here: what is done with it is skipped
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	db, err := postgres.Open(ctx, r.databaseConfig(r.db.Schema(), 1, "spillway-retention"))
	if err != nil {
		return nil, environment("database: %w", err)
	}
	f := &forgetting{db: db}
	f.retention = inbox.NewRetention(inbox.RetentionConfig{
		DB: db, Policy: cfg.Policy, Keep: cfg.Keep, Every: cfg.Every, Gone: func(seqs []int64) {
			r.metrics.Forgotten(len(seqs))
			f.note(seqs)
		},
	})
	return f, nil
}

func (f *forgetting) note(seqs []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seq := range seqs {
		f.gone.set(seq)
	}
}

// run purges until ctx ends.
func (f *forgetting) run(ctx context.Context) {
	if f != nil {
		f.retention.Run(ctx)
	}
}

// claimed tells the audit of the claims that are gone.
func (f *forgetting) claimed(truth *ledger.Truth) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone.each(truth.Claimed)
}

func (f *forgetting) close() {
	if f != nil {
		f.db.Close()
	}
}

// summary is what the result says of the purges; nil without.
func (f *forgetting) summary(policy string) *result.Retention {
	if f == nil {
		return nil
	}
	c := f.retention.Counts()
	return &result.Retention{
		Policy: policy, Purges: c.Purges, Claims: c.Claims, Postponed: c.Postponed, Failed: c.Failed,
		BusySeconds: c.Busy.Seconds(), LongestSeconds: c.Longest.Seconds(),
	}
}

// bits is a set of small numbers, a bit each.
type bits []uint64

func (b *bits) set(n int64) {
	if n < 0 {
		return
	}
	for int64(len(*b)) <= n/64 {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bits) each(do func(n int64)) {
	for i, word := range b {
		for k := range 64 {
			if word&(1<<k) != 0 {
				do(int64(i*64 + k))
			}
		}
	}
}
