package experiment

import (
	"context"
	"sync/atomic"

	"spillway/internal/fault"
	"spillway/internal/postgres"
	"spillway/internal/profile"
)

// poolSqueeze holds connections that the handlers would use.
func (r *run) poolSqueeze(f profile.Fault) fault.Fault {
	return &fault.Held{
		Name: f.Kind, Ping: r.db.Ping,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			release, err := r.db.Squeeze(ctx, f.Leave)
			if err != nil {
				return nil, err
			}
			return func(context.Context) error { release(); return nil }, nil
		},
		Counts: func() []fault.Mark { return []fault.Mark{{Name: "pool_waits", Value: float64(r.db.PoolStats().Waits)}} },
	}
}

// heldSnapshot keeps dead row versions. What it kept is known when it is released.
func (r *run) heldSnapshot(f profile.Fault) fault.Fault {
	var held atomic.Pointer[postgres.Horizon]
	held.Store(&postgres.Horizon{})
	return &fault.Held{
		Name: f.Kind, Ping: r.db.Ping,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			snapshot, err := r.db.HoldSnapshot(ctx)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error {
				h, err := snapshot.Release(ctx)
				held.Store(&h)
				return err
			}, nil
		},
		Counts: func() []fault.Mark {
			h := held.Load()
			return []fault.Mark{
				{Name: "horizon_transactions", Value: float64(h.Transactions)}, {Name: "dead_tuples", Value: float64(h.DeadTuples)},
			}
		},
	}
}

// hotSKU is the one that the load draws most often, whatever the distribution.
const hotSKU = 0

// rowLock locks the hot SKU's stock.
func (r *run) rowLock(f profile.Fault) fault.Fault {
	var waiting atomic.Int64
	return &fault.Held{
		Name: f.Kind, Ping: r.db.Ping,
		Hold: func(ctx context.Context) (func(context.Context) error, error) {
			lock, err := r.db.LockRow(ctx, postgres.SKU(hotSKU))
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error {
				n, err := lock.Release(ctx)
				waiting.Store(n)
				return err
			}, nil
		},
		Counts: func() []fault.Mark { return []fault.Mark{{Name: "sessions_waiting", Value: float64(waiting.Load())}} },
	}
}
