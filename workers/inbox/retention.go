package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"spillway/internal/postgres"
)

// Policies of forgetting, as profiles name them.
const (
	RetainAll        = "none"       // every claim is kept
	RetainDelete     = "delete"     // old claims are deleted
	RetainPartitions = "partitions" // claims lie in partitions by time, and the old ones are dropped
)

// RetentionConfig is what a Retention needs.
type RetentionConfig struct {
	DB     *postgres.DB  // on the run's schema; one connection is used
	Policy string        // RetainDelete or RetainPartitions; the latter needs an inbox that was made with partitions of width Every
	Keep   time.Duration // a claim goes when its message was due so long ago
	Every  time.Duration // between two purges
	Gone   func(seqs []int64)
}

// Retention makes the inbox forget. What it forgot does not protect any more: a message that comes again after that is
// applied again.
type Retention struct {
	cfg RetentionConfig

	mu     sync.Mutex
	counts RetentionCounts // guarded by mu
}

// RetentionCounts is what the purges did and took.
type RetentionCounts struct {
	Purges    int64 // that ran to their end
	Claims    int64 // that were forgotten
	Postponed int64 // purges put off, at least in part, since others were using the inbox
	Failed    int64 // that the database did not carry out
	Busy      time.Duration
	Longest   time.Duration
}

// NewRetention returns a retention. Run purges.
func NewRetention(cfg RetentionConfig) *Retention { return &Retention{cfg: cfg} }

// Counts returns the sums so far.
func (r *Retention) Counts() RetentionCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Run purges until ctx ends. A purge that fails is left to the next one: nothing depends on it but space.
func (r *Retention) Run(ctx context.Context) {
	ticker := time.NewTicker(r.cfg.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		began := time.Now()
		n, err := r.purge(ctx, began)
		if ctx.Err() != nil && err != nil {
			return
		}
		r.note(n, time.Since(began), err)
	}
}

func (r *Retention) purge(ctx context.Context, now time.Time) (int64, error) {
	before := now.Add(-r.cfg.Keep)
	if r.cfg.Policy == RetainPartitions {
		return r.cfg.DB.RollPartitions(ctx, now, before, r.cfg.Every, r.cfg.Gone)
	}
	return r.cfg.DB.Purge(ctx, before, r.cfg.Gone)
}

func (r *Retention) note(n int64, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.counts
	c.Claims += n
	c.Busy += took
	c.Longest = max(c.Longest, took)
	switch {
	case errors.Is(err, postgres.ErrInUse):
		c.Postponed++
	case err != nil:
		c.Failed++
	default:
		c.Purges++
	}
}
