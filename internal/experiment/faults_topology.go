package experiment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"spillway/internal/fault"
	"spillway/internal/profile"
	"spillway/internal/topology"
)

// bindingOf returns the binding of a queue; each has one.
func (r *run) bindingOf(queue string) topology.Binding {
	for _, b := range r.plan.Bindings {
		if b.Queue == queue {
			return b
		}
	}
	return topology.Binding{Queue: queue}
}

// policiesOf returns the policies of the queues that are chosen by name.
func (r *run) policiesOf(chosen func(queue string) bool) []topology.Policy {
	var all []topology.Policy
	for i, q := range r.plan.Queues { // with policies, each queue has the one at its own place
		if chosen(q.Name) {
			all = append(all, r.plan.Policies[i])
		}
	}
	return all
}

var errNotBound = errors.New("the binding is not there")

// pingBinding uses the broker, and looks for the bindings where the rights allow it.
func (r *run) pingBinding(bindings ...topology.Binding) func(context.Context) error {
	return func(ctx context.Context) error {
		if r.management == nil {
			return r.pingBroker(ctx)
		}
		for _, b := range bindings {
			bound, err := r.management.Bound(ctx, r.broker.Vhost(), b)
			if err != nil {
				return err
			}
			if !bound {
				return errNotBound
			}
		}
		return nil
	}
}

// pingPolicies holds what is in force on the queues against what is meant to be.
func (r *run) pingPolicies(ctx context.Context) error {
	return r.management.CheckEffective(ctx, r.broker.Vhost(), r.plan)
}

// unbind removes bindings and returns what puts them back.
func (r *run) unbind(ctx context.Context, bindings ...topology.Binding) (func(context.Context) error, error) {
	restore := func(ctx context.Context) (err error) {
		for _, b := range bindings {
			err = errors.Join(err, r.broker.Admin().Bind(ctx, b))
		}
		return err
	}
	for _, b := range bindings {
		if err := r.broker.Admin().Unbind(ctx, b); err != nil {
			return nil, errors.Join(err, restore(context.WithoutCancel(ctx))) // the broker may have done it
		}
	}
	return restore, nil
}

func (r *run) bindingRemoved(f profile.Fault) fault.Fault {
	bindings := []topology.Binding{r.bindingOf(r.plan.Work)}
	if f.Binding == profile.BindingRetry {
		bindings = nil
		for _, q := range r.plan.TierQueues() {
			bindings = append(bindings, r.bindingOf(q.Queue))
		}
	}
	return &fault.Held{
		Name: f.Kind, Unavailable: r.obstacle(f), Ping: r.pingBinding(bindings...),
		Hold: func(ctx context.Context) (func(context.Context) error, error) { return r.unbind(ctx, bindings...) },
		Counts: func() []fault.Mark {
			return []fault.Mark{
				{Name: "returned", Value: float64(r.ledger.Counts().Returned)},
				{Name: "copies_refused", Value: float64(r.signals.copiesRefused.Load())},
			}
		},
	}
}

// parkingUnavailable keeps messages from the parking lot. With park_via reject the broker holds them, and says how many.
func (r *run) parkingUnavailable(f profile.Fault) fault.Fault {
	var held atomic.Int64
	b := r.bindingOf(r.plan.Parking)
	h := &fault.Held{
		Name: f.Kind, Unavailable: r.obstacle(f), Ping: r.pingBinding(b),
		Hold: func(ctx context.Context) (func(context.Context) error, error) { return r.unbind(ctx, b) },
		Counts: func() []fault.Mark {
			return []fault.Mark{
				{Name: "copies_refused", Value: float64(r.signals.copiesRefused.Load())},
				{Name: "dead_letters_held", Value: float64(held.Load())},
			}
		},
	}
	if f.By == profile.ByLength {
		h.Ping, h.Hold = r.pingPolicies, r.fillParking
	}
	h.Hold = before(h.Hold, func(ctx context.Context) { held.Store(r.deadLettersHeld(ctx)) })
	return h
}

// before lets look be called ahead of the release.
func before(hold holder, look func(context.Context)) holder {
	return func(ctx context.Context) (func(context.Context) error, error) {
		release, err := hold(ctx)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			look(ctx)
			return release(ctx)
		}, nil
	}
}

// holder is what fault.Held.Hold is.
type holder = func(ctx context.Context) (func(context.Context) error, error)

// fillParking lets the parking lot's own policy say that it is full.
func (r *run) fillParking(ctx context.Context) (func(context.Context) error, error) {
	policies := r.policiesOf(func(queue string) bool { return queue == r.plan.Parking })
	full := make([]topology.Policy, len(policies))
	for i, p := range policies {
		p.Definition = maps.Clone(p.Definition)
		p.Definition["max-length"] = int64(0)
		full[i] = p
	}
	return r.change(ctx, policies, func(ctx context.Context) error { return r.putPolicies(ctx, full) })
}

// change carries out a change of policies and returns what puts them back.
func (r *run) change(ctx context.Context, policies []topology.Policy, how func(context.Context) error) (func(context.Context) error, error) {
	restore := func(ctx context.Context) error { return r.putPolicies(ctx, policies) }
	if err := how(ctx); err != nil {
		return nil, errors.Join(err, restore(context.WithoutCancel(ctx)))
	}
	return restore, nil
}

func (r *run) putPolicies(ctx context.Context, policies []topology.Policy) error {
	for _, p := range policies {
		if err := r.management.PutPolicy(ctx, r.broker.Vhost(), p); err != nil {
			return err
		}
	}
	return nil
}

// deadLettersHeld returns how many messages the broker holds back for want of a place; 0 when it does not say.
func (r *run) deadLettersHeld(ctx context.Context) int64 {
	if r.management == nil {
		return 0
	}
	q, err := r.management.Queue(ctx, r.broker.Vhost(), r.plan.Work)
	if err != nil {
		return 0
	}
	return int64(q.DeadLetterPending)
}

// policyRemoved takes the policies of the tiers away. What lies there has no time to live any more, and gets it back with them.
func (r *run) policyRemoved(f profile.Fault) fault.Fault {
	var overdue atomic.Int64
	h := &fault.Held{
		Name: f.Kind, Unavailable: r.obstacle(f), Ping: r.pingPolicies,
		Counts: func() []fault.Mark { return []fault.Mark{{Name: "overdue_retries", Value: float64(overdue.Load())}} },
	}
	h.Hold = before(func(ctx context.Context) (func(context.Context) error, error) {
		policies := r.policiesOf(r.isTier)
		return r.change(ctx, policies, func(ctx context.Context) error { return r.deletePolicies(ctx, policies) })
	}, func(ctx context.Context) { overdue.Store(r.overdueRetries(ctx)) })
	return h
}

// isTier reports whether a queue is one of a tier's.
func (r *run) isTier(queue string) bool {
	return slices.ContainsFunc(r.plan.TierQueues(), func(q topology.TierQueue) bool { return q.Queue == queue })
}

func (r *run) deletePolicies(ctx context.Context, policies []topology.Policy) error {
	for _, p := range policies {
		if err := r.management.DeletePolicy(ctx, r.broker.Vhost(), p.Name); err != nil {
			return err
		}
	}
	return nil
}

// overdueRetries returns how many more messages lie in the tiers than are still due to: the ledger goes by their delays, and the
// broker says what is there. 0 when it does not.
func (r *run) overdueRetries(ctx context.Context) int64 {
	ready, err := r.readyDepths(ctx)
	if err != nil {
		return 0
	}
	lying := 0
	for _, q := range r.plan.TierQueues() {
		lying += ready[q.Queue]
	}
	return max(0, int64(lying-r.ledger.View(r.base.Now()).RetryDebt))
}
