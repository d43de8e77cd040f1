package experiment

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
)

// phase is a stretch of the run, as offsets on its time base.
type phase struct {
	name       string
	start, end time.Duration
}

// leadTime is how long before the first arrival everything is started: connections open and consumers attach in it.
const leadTime = 500 * time.Millisecond

// stopTimeout bounds the orderly stop of the workers after the drain: what they hold is finished, then acks are flushed.
const stopTimeout = 10 * time.Second

var errOutOfTime = errors.New("--max-time is over")

// carryOut runs workers, load and faults to the end of the drain. Ending ctx stops the offering only; the hard stop comes
// by the bounds.
func (r *run) carryOut(ctx context.Context) error {
	hard, hardStop := context.WithCancel(context.WithoutCancel(ctx))
	defer hardStop()
	watching, stopWatching := context.WithCancel(hard)
	defer stopWatching()
	alive, died := context.WithCancel(ctx)
	defer died()
	gentle, cancel := r.gentle(alive)
	defer cancel()

	var serving, aside errgroup.Group
	serving.Go(func() error { return r.crew.Run(hard) })
	aside.Go(func() error { r.probe.Run(watching); return nil })
	aside.Go(func() error { r.measured.follow(watching, r); return nil })
	aside.Go(func() error { r.deaths.follow(watching, r, died); return nil })
	aside.Go(func() error { r.forgotten.run(watching); return nil })

	finishEvents := r.relayEvents(ctx)
	r.offer(gentle, hard)
	if len(r.deaths.seen()) == 0 { // what a dead server holds does not drain
		r.drain(hard)
		r.redriveParked(gentle, hard)
	}
	r.interrupted = ctx.Err() != nil // in the drain, too, which goes on: it is bounded anyway
	r.stopWorkers(hardStop, &serving)
	finishEvents()
	stopWatching()
	return errors.Join(aside.Wait(), r.watch.close(r.base.Now()))
}

// gentle returns a context that ends when the offering has to: at an interruption, or when the time is up.
func (r *run) gentle(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.o.MaxTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, r.o.MaxTime, errOutOfTime)
}

// offer walks the schedule with the faults beside it, and returns when every message has its last outcome and every
// fault is healed.
func (r *run) offer(gentle, hard context.Context) {
	stop := context.AfterFunc(gentle, r.generator.Stop)
	defer stop()
	var breaking errgroup.Group
	breaking.Go(func() error { r.timeline.Run(gentle); return nil })

	loadStart := leadTime + r.o.Profile.Load.Warmup
	r.watch.enter(PhaseWarmup)
	entering := time.AfterFunc(loadStart-r.base.Now(), func() { r.watch.enter(PhaseLoad) })
	defer entering.Stop()

	giveUp, cancel := context.WithCancel(hard)
	defer cancel()
	var bounding errgroup.Group
	bounding.Go(func() error { r.boundConfirms(giveUp, cancel); return nil })
	_ = r.generator.Run(giveUp) // its only error is the end of giveUp, and what it could not send is counted
	cancel()
	_ = bounding.Wait()
	_ = breaking.Wait()

	r.outOfTime = errors.Is(context.Cause(gentle), errOutOfTime)
	r.phases = append(r.phases, r.loadPhases(loadStart, r.offeredUntil)...)
}

// boundConfirms gives the producer the drain's time, after the schedule's end or a stop, to bring its messages to their
// last outcome: a broker that is away must not hold the run for ever.
func (r *run) boundConfirms(ctx context.Context, giveUp context.CancelFunc) {
	select {
	case <-r.generator.Walked():
		r.offeredUntil = r.base.Now()
		r.watch.enter(PhaseDrain)
	case <-ctx.Done():
		return
	}
	if len(r.deaths.seen()) > 0 || broker.Wait(ctx, r.o.Profile.Drain.Timeout) {
		giveUp()
	}
}

// loadPhases splits the offering into warm-up and load.
func (r *run) loadPhases(loadStart, end time.Duration) []phase {
	switch {
	case end <= loadStart:
		return []phase{{PhaseWarmup, leadTime, end}}
	case r.o.Profile.Load.Warmup == 0:
		return []phase{{PhaseLoad, loadStart, end}}
	default:
		return []phase{{PhaseWarmup, leadTime, loadStart}, {PhaseLoad, loadStart, end}}
	}
}

// stopWorkers ends the workers: in order within the bound, then by force.
func (r *run) stopWorkers(hardStop context.CancelFunc, serving *errgroup.Group) {
	r.crew.Stop()
	timer := time.AfterFunc(stopTimeout, hardStop)
	defer timer.Stop()
	if err := serving.Wait(); err != nil {
		r.say("workers: %v", err)
	}
}
