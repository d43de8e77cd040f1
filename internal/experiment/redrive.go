package experiment

import (
	"context"
	"time"

	"spillway/internal/redrive"
	"spillway/internal/result"
)

// redriveParked moves what lies in parking back to the work queue, and waits until it is worked off. It is skipped when the run
// was stopped.
func (r *run) redriveParked(gentle, hard context.Context) {
	cfg := &r.o.Profile.Redrive
	if cfg.Rate == 0 || gentle.Err() != nil {
		return
	}
	r.watch.enter(PhaseRedrive)
	start := r.base.Now()
	defer func() { r.phases = append(r.phases, phase{PhaseRedrive, start, r.base.Now()}) }()
	sum, err := redrive.Run(gentle, redrive.Options{
		Driver: r.broker.Driver(), From: r.plan.Parking, To: r.plan.Work, Rate: cfg.Rate, StopShare: cfg.StopShare,
		Ready: func(ctx context.Context) (int, error) {
			depth, err := r.broker.Admin().Depth(ctx, r.plan.Parking)
			return depth.Ready, err
		},
	})
	r.redriveErr = err
	r.drainAgain(hard)
	r.redriven = &result.Redrive{Parked: sum.Parked, Moved: sum.Moved, Back: sum.Back}
	r.say("redrive: %d of %d parked messages moved back", sum.Moved, sum.Parked)
}

// redriveStill is for how long nothing must have moved, with the queues empty, for the redriven messages to be worked off: a
// ledger that has seen their end once does not wait for them again.
const redriveStill = time.Second

func (r *run) drainAgain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Profile.Drain.Timeout)
	defer cancel()
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for still := (stillness{since: r.base.Now()}); ; {
		if still.moved(r.ledger.Counts(), r.base.Now()) >= redriveStill && r.queuesEmpty(ctx) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
