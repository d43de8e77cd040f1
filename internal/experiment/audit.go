package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/ledger"
	"spillway/internal/postgres"
)

// auditTimeout bounds the reading of the truth. Ten million messages take about a minute from the database.
const auditTimeout = 5 * time.Minute

// audit reads what the servers really hold and makes the account of it. It runs after every worker has stopped and before
// anything is removed, also after an interruption.
func (r *run) audit() error {
	r.watch.enter(PhaseAudit)
	start := r.base.Now()
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	truth := ledger.NewTruth(r.ledger.Span())
	r.forgotten.claimed(truth)
	r.readDatabase(ctx, truth)
	r.readOrders(ctx, truth)
	r.readRefusals(ctx, truth)
	r.readBroker(ctx, truth)
	for _, what := range r.broker.NotAudited() {
		truth.Unaudited(what)
	}
	r.account = r.ledger.Account(truth)
	r.noteOrders()
	if r.account.Lost > 0 {
		r.held = r.deadLetterPending(ctx)
		r.account.HeldByBroker(r.held)
	}
	r.phases = append(r.phases, phase{PhaseAudit, start, r.base.Now()})
	return nil
}

// readDatabase reads claims, then effects: an effect that commits between the two shows as one whose claim was not seen,
// never as a claim without its effect.
func (r *run) readDatabase(ctx context.Context, truth *ledger.Truth) {
	err := r.awaitDatabase(ctx)
	if err == nil {
		err = r.db.Claims(ctx, func(seq int64, _ int) error {
			truth.Claimed(seq)
			return nil
		})
	}
	if err == nil {
		err = r.db.Effects(ctx, func(e postgres.EffectRow) error {
			truth.Effects(e.Seq, int64(e.Applied), int64(e.Refused))
			return nil
		})
	}
	switch {
	case errors.Is(err, errNoDatabase):
		truth.Unaudited(err.Error())
	case err != nil:
		truth.UnreadDatabase(err.Error())
	}
}

// databaseTimeout bounds the wait for a database that was just healed, or is being healed by others.
const databaseTimeout = 30 * time.Second

func (r *run) awaitDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	for {
		err := r.db.Ping(ctx)
		if err == nil || errors.Is(err, errNoDatabase) || !broker.Wait(ctx, drainPoll) {
			return err
		}
	}
}

// readBroker reads the ids lying in every queue. Queues are read together, since an expiring retry moves meanwhile.
func (r *run) readBroker(ctx context.Context, truth *ledger.Truth) {
	lying, err := r.broker.Admin().ReadAll(ctx, r.plan.QueueNames())
	if err != nil {
		truth.Unaudited(fmt.Sprintf("the queues: %v", err))
		return
	}
	r.readEvents(lying[r.plan.EventsQueue], truth)
	delete(lying, r.plan.EventsQueue)
	for queue, messages := range lying {
		where := r.placeOf(queue)
		for _, m := range messages {
			if m.Run != r.o.RunID { // of another run, with a sequence of its own
				m.Seq = envelope.NoSeq
			}
			truth.Lying(m.Seq, where)
		}
	}
	r.noteExpirable(truth)
}

func (r *run) placeOf(queue string) ledger.Place {
	switch queue {
	case r.plan.Work:
		return ledger.InWork
	case r.plan.Parking:
		return ledger.InParking
	default:
		return ledger.InTier
	}
}

// noteExpirable tells which parked messages the parking lot may have let go: those parked longer ago than its retention.
func (r *run) noteExpirable(truth *ledger.Truth) {
	retention := r.o.Profile.Topology.ParkingRetention
	if retention == 0 {
		return
	}
	before := r.base.Now() - retention
	r.signals.eachParked(func(seq int64, at time.Duration) {
		if at <= before {
			truth.Expirable(seq)
		}
	})
}

// statisticsAge bounds how old the management API's statistics of a queue are: they move on a tick of 5 s by default.
const statisticsAge = 6 * time.Second

// deadLetterPending returns how many messages the broker holds for dead-letter targets that refuse them. Only statistics
// tell, so it waits until these are younger than the end of the load; without the management API it is 0, and the account
// says what was not audited.
func (r *run) deadLetterPending(ctx context.Context) (held int64) {
	if r.management == nil || !broker.Wait(ctx, statisticsAge) {
		return 0
	}
	for _, name := range r.plan.QueueNames() {
		q, err := r.management.Queue(ctx, r.broker.Vhost(), name)
		if err == nil {
			held += int64(q.DeadLetterPending)
		}
	}
	return held
}
