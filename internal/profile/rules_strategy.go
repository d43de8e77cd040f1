package profile

import "fmt"

// Strategies: how a message that failed comes back to the work queue.
const (
	StrategyTTLTiers     = "ttl-tiers"
	StrategyDelayedRetry = "delayed-retry"
	StrategyRequeue      = "requeue"
	StrategySleep        = "sleep"
	StrategyMessageTTL   = "message-ttl"
)

// What becomes of a retry without a token.
const (
	OverPark  = "park"
	OverDefer = "defer"
)

// Ways to return a message to its queue.
const (
	ReturnByReject = "reject"
	ReturnByNack   = "nack"
)

// Copies reports whether the strategy publishes a copy of what is to be retried. The others return the message itself.
func (t *Topology) Copies() bool {
	return t.Strategy == StrategyTTLTiers || t.Strategy == StrategyMessageTTL
}

// returnsNeedADelivery refuses early acks with strategies that return the message: what is acked cannot be returned.
func returnsNeedADelivery(j *judge) {
	if ack := j.Workers.Ack; !j.Topology.Copies() && ack != AckAfterCommit {
		j.report("topology.strategy", "%s returns a message that failed, but with workers.ack %s it is acked by then; set workers.ack to %s, or the strategy to %s",
			j.Topology.Strategy, ack, AckAfterCommit, StrategyTTLTiers)
	}
}

// faultsNeedTiers refuses faults of queues that the strategy does not have.
func faultsNeedTiers(j *judge) {
	for i, f := range j.Faults {
		path := fmt.Sprintf("faults.%d.kind", i)
		switch {
		case f.Kind == FaultPolicyRemoved && j.Topology.Strategy != StrategyTTLTiers:
			j.report(path, "%s is done to retry tiers, and strategy %s has none", f.Kind, j.Topology.Strategy)
		case f.Kind == FaultBindingRemoved && f.Binding == BindingRetry && !j.Topology.Copies():
			j.report(path, "%s of retry is done to retry queues, and strategy %s has none", f.Kind, j.Topology.Strategy)
		case f.Kind == FaultWorkersKill && f.Point == PointAfterRetry && !j.Topology.Copies():
			j.report(path, "%s waits for a copy in a retry queue, and strategy %s makes none", f.Kind, j.Topology.Strategy)
		}
	}
}

// retryKeysHaveMeaning is keysHaveMeaning for the way in which messages come back.
func retryKeysHaveMeaning(j *judge) {
	t, strategy := &j.Topology, "strategy "+j.Topology.Strategy
	j.refuseVain([]vain{
		{"retry.tokens.floor", j.Retry.Tokens.Floor != 10 && j.Retry.Tokens.Ratio == 0, "retry.tokens.ratio is 0, so there is no such budget"},
		{"retry.tokens.over", j.Retry.Tokens.Over == OverDefer && !t.Copies(), strategy + " has no tier to wait in"},
		{"topology.return_by", t.ReturnBy != ReturnByReject && t.Copies(), strategy + " returns nothing, it publishes a copy"},
		{"topology.delayed_retry_type", t.DelayedRetryType != "all" && t.Strategy != StrategyDelayedRetry, "the strategy is " + t.Strategy},
		{"topology.shards", t.Shards != 1 && t.Strategy != StrategyTTLTiers, strategy + " has no tiers to split"},
	})
}
