package fault

import (
	"time"

	"spillway/internal/stack"
)

// Kinds of faults of a server.
const (
	KindPostgresStop   = "postgres.stop"
	KindPostgresFreeze = "postgres.freeze"
	KindBrokerRestart  = "broker.restart"
	KindBrokerKill     = "broker.kill"
	KindBrokerFreeze   = "broker.freeze"
	KindMemoryAlarm    = "broker.memory-alarm"
	KindDiskAlarm      = "broker.disk-alarm"
	KindNodeKill       = "broker.node-kill"
	KindLeaderLoss     = "broker.leader-loss"
	KindPartition      = "broker.partition"
)

// Kinds of faults that hold something.
const (
	KindPoolSqueeze        = "postgres.pool-squeeze"
	KindHeldSnapshot       = "postgres.held-snapshot"
	KindRowLock            = "postgres.row-lock"
	KindBindingRemoved     = "topology.binding-removed"
	KindParkingUnavailable = "topology.parking-unavailable"
	KindPolicyRemoved      = "topology.policy-removed"
	KindDelay              = "network.delay"
	KindJitter             = "network.jitter"
	KindReset              = "network.reset"
	KindBandwidth          = "network.bandwidth"
)

// Stop is a real, orderly stop of a server, as an operator or a failover would do it.
func Stop(kind string, s Server) *ServerFault {
	return &ServerFault{Name: kind, Server: s, Trouble: stack.Stopped}
}

// Freeze stops every process of a server where it is (SIGSTOP): connections stay open and nothing is answered, as on a machine
// that swaps or is being migrated.
func Freeze(kind string, s Server) *ServerFault {
	return &ServerFault{Name: kind, Server: s, Trouble: stack.Frozen}
}

// DeclareSettles is how long after the declaration of a queue the broker may be killed. RabbitMQ 4.3.6 writes the registration
// of a new quorum queue late: killed 0.5 s after the declaration it came back with the queue empty, confirmed messages or
// not, each time; after 1 s half of the times; after 2 s and more never (ran, 20 kills). What makes it safe is time
// alone: no confirm tells of it. It is a defect of a queue's first seconds, and a run is about what comes later.
const DeclareSettles = 5 * time.Second

// Kill ends RabbitMQ by SIGKILL, as the kernel does when memory is short. The queues were declared at the given time.
func Kill(s Server, declared time.Time) *ServerFault {
	return &ServerFault{Name: KindBrokerKill, Server: s, Trouble: stack.Killed, NotBefore: declared.Add(DeclareSettles)}
}

// MemoryAlarm raises RabbitMQ's memory alarm by lowering its watermark to nothing, and puts the stack's own back.
func MemoryAlarm(s Server) *ServerFault {
	return &ServerFault{Name: KindMemoryAlarm, Server: s, Trouble: stack.MemoryAlarm}
}

// DiskAlarm raises RabbitMQ's disk alarm by asking for more free space than there is, and puts the stack's own limit back.
func DiskAlarm(s Server) *ServerFault {
	return &ServerFault{Name: KindDiskAlarm, Server: s, Trouble: stack.DiskAlarm}
}
