package experiment

import (
	"context"
	"errors"
	"time"

	"spillway/internal/broker/rabbit"
	"spillway/internal/postgres"
)

// provision makes the run's vhost, topology and schema. After an error nothing of it is left.
func (r *run) provision(ctx context.Context) error {
	t, inbox := &r.o.Profile.Topology, &r.o.Profile.Inbox
	if r.o.Keep && !r.o.Servers.Lasting {
		r.say("--keep: the servers of this run end with it; to look at what it leaves, run on `spillway stack up --detach`")
	}
	r.say("provision: topology (isolation %s, settings by %s) and %s", t.Isolation, t.Declare, r.schemaWords())
	var err error
	r.broker, err = rabbit.Provision(ctx, rabbit.ProvisionOptions{
		Isolation: t.Isolation, Declare: t.Declare, Management: t.Management, RunID: r.o.RunID, Plan: r.plan,
		Driver: r.admin, Client: r.management,
	})
	if err != nil {
		return environment("broker: %w", err)
	}
	r.declaredAt = time.Now()
	err = r.db.Provision(ctx, postgres.Settings{
		SKUs: r.o.Profile.Load.SKUs, InitialStock: inbox.InitialStock, InboxPartition: partitionOf(&inbox.Retention),
	})
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		return errors.Join(environment("database: %w", err), r.broker.Remove(undo))
	}
	return nil
}

// readyDepths asks the broker for the ready messages of every queue. Passive declares are exact at once, where the
// management API's statistics are seconds old.
func (r *run) readyDepths(ctx context.Context) (map[string]int, error) {
	ready := make(map[string]int, len(r.plan.Queues))
	for _, name := range r.plan.QueueNames() {
		depth, err := r.broker.Admin().Depth(ctx, name)
		if err != nil {
			return nil, err
		}
		ready[name] = depth.Ready
	}
	return ready, nil
}
