package profile

import "slices"

// Names of the faults.
const (
	FaultPostgresStop       = "postgres.stop"
	FaultPostgresFreeze     = "postgres.freeze"
	FaultPoolSqueeze        = "postgres.pool-squeeze"
	FaultHeldSnapshot       = "postgres.held-snapshot"
	FaultRowLock            = "postgres.row-lock"
	FaultBrokerRestart      = "broker.restart"
	FaultBrokerKill         = "broker.kill"
	FaultBrokerFreeze       = "broker.freeze"
	FaultMemoryAlarm        = "broker.memory-alarm"
	FaultDiskAlarm          = "broker.disk-alarm"
	FaultCloseConnections   = "broker.close-connections"
	FaultNodeKill           = "broker.node-kill"
	FaultLeaderLoss         = "broker.leader-loss"
	FaultPartition          = "broker.partition"
	FaultBindingRemoved     = "topology.binding-removed"
	FaultParkingUnavailable = "topology.parking-unavailable"
	FaultPolicyRemoved      = "topology.policy-removed"
	FaultDelay              = "network.delay"
	FaultJitter             = "network.jitter"
	FaultReset              = "network.reset"
	FaultBandwidth          = "network.bandwidth"
	FaultWorkersFail        = "workers.fail"
	FaultWorkersKill        = "workers.kill"
	FaultWorkersFreeze      = "workers.freeze"
)

// Sides of broker.close-connections.
const (
	SideProducer = "producer"
	SideWorkers  = "workers"
	SideBoth     = "both"
)

// Targets of the network's faults: the server at the other end.
const (
	TargetBroker   = "broker"
	TargetDatabase = "database"
)

// Nodes that a partition cuts off.
const (
	MinorityLeader   = "leader"
	MinorityFollower = "follower"
)

// Bindings that may be removed.
const (
	BindingOrders = "orders"
	BindingRetry  = "retry"
)

// Ways in which parking is unavailable.
const (
	ByBinding = "binding"
	ByLength  = "length"
)

// FaultKind is one row of the table of faults. A new fault is one row here and one implementation in the fault package.
type FaultKind struct {
	Name      string
	Doc       string
	Takes     []string // its own keys, besides from and for
	NeedsFail bool     // needs the shares under `fail`
	Service   string   // the server that it needs in its own hands, as the stack names it; "" for none
	Nodes     int      // that the broker's cluster must have; 0 for any
	Marks     []Mark   // of which at least one that proves something has to move inside the window
}

// Mark is one number of a fault's evidence.
type Mark struct {
	Name string
	Doc  string
	Told bool // says what was done, and proves nothing of its being felt
}

// Marks that several faults leave.
var (
	markTransient   = Mark{Name: "transient_failures", Doc: "attempts that failed with a transient error of the database's own"}
	markEffects     = Mark{Name: "silent_seconds", Doc: "time in which no handler finished, in gaps of 0.25 s and more"}
	markConfirms    = Mark{Name: "silent_seconds", Doc: "time in which no publish was answered, in gaps of 0.25 s and more"}
	markReconnect   = Mark{Name: "reconnects", Doc: "connections opened again"}
	markRedelivered = Mark{Name: "redelivered", Doc: "deliveries that the broker had made before"}
	markBlocked     = Mark{Name: "blocked_seconds", Doc: "time in which a producing connection was blocked"}
	markCopies      = Mark{Name: "copies_refused", Doc: "publishes of the workers, retries and parkings, that were returned or nacked"}
	markSlow        = Mark{Name: "slow_answers", Doc: "confirms, or handler calls where the target is the database, that took longer than the fault's delay (bandwidth: than 0.1 s)"}
)

// FaultKinds returns the known faults, in the order in which they are listed.
func FaultKinds() []FaultKind {
	return slices.Concat(databaseFaultKinds(), brokerFaultKinds(), clusterFaultKinds(), topologyFaultKinds(), networkFaultKinds(), workersFaultKinds())
}

func workersFaultKinds() []FaultKind {
	return []FaultKind{
		{Name: FaultWorkersFail, Doc: "The handlers fail by the shares given.", Takes: []string{"fail"}, NeedsFail: true,
			Marks: []Mark{{Name: "simulated_failures", Doc: "handler calls that failed by these shares"}}},
		{Name: FaultWorkersKill, Takes: []string{"times", "point"}, Doc: "Worker processes are ended by SIGKILL, one after the other, each when one of its deliveries has come to the point; another takes its place. Needs workers.processes.",
			Marks: []Mark{markRedelivered, markReconnect, {Name: "rounds", Doc: "processes killed", Told: true}}},
		{Name: FaultWorkersFreeze, Doc: "A worker process is frozen, and goes on. Needs workers.processes.",
			Marks: []Mark{markRedelivered, {Name: "silent_seconds", Doc: "time for which the frozen process had told nothing at the end of the window"}}},
	}
}

func databaseFaultKinds() []FaultKind {
	return []FaultKind{
		{Name: FaultPostgresStop, Service: "postgres", Doc: "The PostgreSQL server is stopped and started again.",
			Marks: []Mark{markTransient, markEffects}},
		{Name: FaultPostgresFreeze, Service: "postgres", Doc: "The PostgreSQL server's processes are frozen, and go on.",
			Marks: []Mark{markTransient, markEffects}},
		{Name: FaultPoolSqueeze, Takes: []string{"leave"}, Doc: "Connections of the workers' pool are held, so that few are left.",
			Marks: []Mark{{Name: "pool_waits", Doc: "callers that found no idle connection"}}},
		{Name: FaultHeldSnapshot, Doc: "A long REPEATABLE READ transaction keeps dead row versions from being removed.",
			Marks: []Mark{{Name: "horizon_transactions", Doc: "transactions begun since the oldest that the snapshot sees as running"},
				{Name: "dead_tuples", Doc: "row versions of the stock that a VACUUM at the end of the window had to leave"}}},
		{Name: FaultRowLock, Doc: "The stock of the first SKU, the hot one where there is one, is locked.",
			Marks: []Mark{{Name: "sessions_waiting", Doc: "sessions of the run that waited for a lock at the end of the window"}}},
	}
}

func brokerFaultKinds() []FaultKind {
	away := []Mark{markConfirms, markReconnect}
	return []FaultKind{
		{Name: FaultBrokerRestart, Service: "rabbitmq", Doc: "RabbitMQ is stopped in an orderly way and started again.", Marks: away},
		{Name: FaultBrokerKill, Service: "rabbitmq", Doc: "RabbitMQ is ended by SIGKILL, at least 5 s after its queues were declared, and started again.", Marks: away},
		{Name: FaultBrokerFreeze, Service: "rabbitmq", Doc: "RabbitMQ's processes are frozen, and go on.", Marks: away},
		{Name: FaultMemoryAlarm, Service: "rabbitmq", Doc: "RabbitMQ's memory alarm is raised: it reads no more from connections that publish.",
			Marks: []Mark{markBlocked}},
		{Name: FaultDiskAlarm, Service: "rabbitmq", Doc: "RabbitMQ's disk alarm is raised: it reads no more from connections that publish.",
			Marks: []Mark{markBlocked}},
		{Name: FaultCloseConnections, Takes: []string{"times", "side"}, Doc: "RabbitMQ closes connections of the run.",
			Marks: []Mark{markReconnect, {Name: "rounds", Doc: "times that connections were closed", Told: true}}},
	}
}

// clusterSize is the least number of nodes of which one may be missing and the others still decide.
const clusterSize = 3

func clusterFaultKinds() []FaultKind {
	marks := []Mark{
		markConfirms, markReconnect, markRedelivered,
		{Name: "nodes_missing", Doc: "nodes that the larger part of the cluster missed at the end of the window"},
		{Name: "leader_changes", Doc: "1 when another node led the work queue at the end of the window", Told: true},
	}
	return []FaultKind{
		{Name: FaultNodeKill, Service: "rabbitmq", Nodes: clusterSize, Marks: marks,
			Doc: "A node of the cluster that does not lead the work queue is ended by SIGKILL, and started again."},
		{Name: FaultLeaderLoss, Service: "rabbitmq", Nodes: clusterSize, Marks: marks,
			Doc: "The node that leads the work queue is ended by SIGKILL, at least 5 s after its queues were declared, and started again."},
		{Name: FaultPartition, Service: "rabbitmq", Nodes: clusterSize, Takes: []string{"minority"}, Marks: marks,
			Doc: "One node is cut off from the others, which refuse its connections as it refuses theirs; clients reach all of them. Then they meet again."},
	}
}

func topologyFaultKinds() []FaultKind {
	return []FaultKind{
		{Name: FaultBindingRemoved, Takes: []string{"binding"}, Doc: "A binding is removed: the work queue's to the orders exchange, so that publishes have no route, or those of the retry tiers, so that retries have none.",
			Marks: []Mark{{Name: "returned", Doc: "publishes of the producer that were returned"}, markCopies}},
		{Name: FaultParkingUnavailable, Takes: []string{"by"}, Doc: "Nothing can be parked: the parking lot's binding is removed, or it is full by its policy.",
			Marks: []Mark{markCopies, {Name: "dead_letters_held", Doc: "messages that the broker held back at the end of the window, since parking took none"}}},
		{Name: FaultPolicyRemoved, Doc: "The policies of the retry tiers are removed. RabbitMQ stamps a message's time when it comes: what waits there expires into nothing and is lost, " +
			"and what comes meanwhile never expires and holds up what is behind it, also when the policies are back (ran, 4.3.6).",
			Marks: []Mark{{Name: "overdue_retries", Doc: "messages that lay in the tiers at the end of the window though their delay was over"}}},
	}
}

func networkFaultKinds() []FaultKind {
	return []FaultKind{
		{Name: FaultDelay, Takes: []string{"target", "delay"}, Doc: "Every answer of the target is late by the delay.", Marks: []Mark{markSlow}},
		{Name: FaultJitter, Takes: []string{"target", "delay"}, Doc: "Every answer of the target is late by between nothing and twice the delay.", Marks: []Mark{markSlow}},
		{Name: FaultReset, Takes: []string{"target"}, Doc: "Connections to the target are closed as soon as something travels on them.",
			Marks: []Mark{
				{Name: "silent_seconds", Doc: "as for a broker, or a database, that is frozen"},
				{Name: "reconnects", Doc: "of the broker: connections opened again"},
				{Name: "transient_failures", Doc: "of the database: attempts that failed with a transient error of its own"},
			}},
		{Name: FaultBandwidth, Takes: []string{"target", "bandwidth"}, Doc: "Each connection to the target carries no more than the bandwidth.", Marks: []Mark{markSlow}},
	}
}

func kindNames() []string {
	var names []string
	for _, k := range FaultKinds() {
		names = append(names, k.Name)
	}
	return names
}

// faultKind returns the row of a fault.
func faultKind(name string) (FaultKind, bool) {
	for _, k := range FaultKinds() {
		if k.Name == name {
			return k, true
		}
	}
	return FaultKind{}, false
}
