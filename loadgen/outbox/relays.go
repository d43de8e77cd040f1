package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
)

// Relays is several relays on one table. One that was killed is replaced, as a supervisor replaces a process that died.
type Relays struct {
	cfg     RelayConfig
	n       int
	kills   atomic.Int64
	stopped context.Context // ends with Stop
	stop    context.CancelFunc
}

// NewRelays returns n relays that share a configuration; its Name gets their numbers. Run starts them.
func NewRelays(cfg RelayConfig, n int) *Relays {
	r := &Relays{cfg: cfg, n: n}
	r.stopped, r.stop = context.WithCancel(context.Background())
	return r
}

// Stop lets the relays finish what is in their hands, and Run return. It may be called at any time, more than once.
func (r *Relays) Stop() { r.stop() }

// Kills returns how many relays died.
func (r *Relays) Kills() int64 { return r.kills.Load() }

// Run relays until Stop is called, or ctx, the hard stop, ends. It returns nil.
func (r *Relays) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for i := range r.n {
		cfg := r.cfg
		cfg.Name = fmt.Sprintf("%s-%d", cfg.Name, i)
		all.Go(func() {
			for errors.Is(newRelay(r.stopped, r.stop, cfg).Run(ctx), ErrKilled) {
				r.kills.Add(1)
			}
		})
	}
	all.Wait()
	return nil
}

// A drain looks at the table again after drainPoll, or after drainShare times what the look took, when that is longer: counting
// a long backlog must not slow its relaying down.
const (
	drainPoll  = 20 * time.Millisecond
	drainShare = 20
)

// Drain waits until no row is unsent but those whose last publish was returned, which may never be routable, and reports
// whether it came to that before ctx ended. It asks the table, not the relays: a row that they skipped is seen, and a
// database that does not answer is not drained. Nobody may write rows meanwhile.
func (r *Relays) Drain(ctx context.Context) bool {
	for {
		began := time.Now()
		if drained, err := r.drained(ctx); err == nil && drained {
			return true
		}
		if !broker.Wait(ctx, max(drainPoll, drainShare*time.Since(began))) {
			return false
		}
	}
}

func (r *Relays) drained(ctx context.Context) (bool, error) {
	before := r.cfg.Book.Unroutable()
	var unsent int64
	query := `select count(*) from ` + r.cfg.Source.table + ` where sent_at is null`
	if err := r.cfg.Pool.QueryRow(ctx, query).Scan(&unsent); err != nil {
		return false, err
	}
	return unsent == before && before == r.cfg.Book.Unroutable(), nil
}
