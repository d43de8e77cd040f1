package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"spillway/internal/fault"
	"spillway/internal/profile"
	"spillway/internal/stack"
)

// clusterFault breaks one node of several. Which one is decided when it is to break: the leader moves.
func (r *run) clusterFault(f profile.Fault) fault.Fault {
	w := &clusterWatch{run: r}
	c := &fault.ServerFault{
		Name: f.Kind, Server: r.brokerServer(w.marks), Trouble: stack.Killed, NotBefore: r.declaredAt.Add(fault.DeclareSettles), Look: w.look,
	}
	c.Server.Ping = r.pingCluster
	leads := f.Kind == fault.KindLeaderLoss
	if f.Kind == fault.KindPartition {
		c.Trouble, leads = stack.Apart, f.Minority == profile.MinorityLeader
	}
	c.Choose = func(ctx context.Context) (string, error) { return w.choose(ctx, leads) }
	return c
}

// pingCluster returns nil when every node sees every other, and the work queue has all its members.
func (r *run) pingCluster(ctx context.Context) error {
	if err := r.pingBroker(ctx); err != nil {
		return err
	}
	if _, most := r.management.Missing(ctx); most > 0 {
		return fmt.Errorf("%w: a node misses %d others", errNotWhole, most)
	}
	q, err := r.management.Queue(ctx, r.broker.Vhost(), r.plan.Work)
	if err != nil {
		return err
	}
	if len(q.Online) < len(q.Members) || q.Leader == "" {
		return fmt.Errorf("%w: queue %q has %d of %d members, led by %q", errNotWhole, r.plan.Work, len(q.Online), len(q.Members), q.Leader)
	}
	return nil
}

var (
	errNotWhole = errors.New("the cluster is not whole")
	errNoLeader = errors.New("no node of the stack leads the work queue")
)

// clusterWatch is what is seen of a cluster while one of its nodes is broken.
type clusterWatch struct {
	run     *run
	before  string       // the leader's name
	missing atomic.Int64 // nodes
	changes atomic.Int64 // 0 or 1
}

// choose returns the node that leads the work queue, or the first that does not.
func (w *clusterWatch) choose(ctx context.Context, leads bool) (string, error) {
	q, err := w.run.management.Queue(ctx, w.run.broker.Vhost(), w.run.plan.Work)
	if err != nil {
		return "", err
	}
	w.before = q.Leader
	for _, n := range w.run.o.Servers.Control.Addresses().Nodes {
		if (n.Name == q.Leader) == leads {
			return n.Service, nil
		}
	}
	return "", fmt.Errorf("%w: it is %q", errNoLeader, q.Leader)
}

func (w *clusterWatch) look(ctx context.Context) {
	least, _ := w.run.management.Missing(ctx)
	w.missing.Store(int64(least))
	if q, err := w.run.management.Queue(ctx, w.run.broker.Vhost(), w.run.plan.Work); err == nil && q.Leader != w.before && q.Leader != "" {
		w.changes.Store(1)
	}
}

func (w *clusterWatch) marks() []fault.Mark {
	return append(w.run.silenceMarks(),
		fault.Mark{Name: "redelivered", Value: float64(w.run.ledger.Counts().Redelivered)},
		fault.Mark{Name: "nodes_missing", Value: float64(w.missing.Load())},
		fault.Mark{Name: "leader_changes", Value: float64(w.changes.Load()), Told: true})
}
