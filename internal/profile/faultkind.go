package profile

// Names of the faults.
const (
	FaultPostgresStop     = "postgres.stop"
	FaultPostgresFreeze   = "postgres.freeze"
	FaultBrokerRestart    = "broker.restart"
	FaultBrokerFreeze     = "broker.freeze"
	FaultMemoryAlarm      = "broker.memory-alarm"
	FaultDiskAlarm        = "broker.disk-alarm"
	FaultCloseConnections = "broker.close-connections"
	FaultWorkersFail      = "workers.fail"
)

// Sides of broker.close-connections.
const (
	SideProducer = "producer"
	SideWorkers  = "workers"
	SideBoth     = "both"
)

// FaultKind is one row of the table of faults. A new fault is one row here and one implementation in the fault package.
type FaultKind struct {
	Name      string
	Doc       string
	NeedsFail bool   // takes, and needs, the shares under `fail`
	Repeats   bool   // takes `times` and `side`
	Service   string // the server that it needs in its own hands, as the stack names it; "" for none
}

// FaultKinds returns the known faults, in the order in which they are listed.
func FaultKinds() []FaultKind {
	return []FaultKind{
		{Name: FaultPostgresStop, Service: "postgres", Doc: "The PostgreSQL server is stopped and started again."},
		{Name: FaultPostgresFreeze, Service: "postgres", Doc: "The PostgreSQL server's processes are frozen, and go on."},
		{Name: FaultBrokerRestart, Service: "rabbitmq", Doc: "RabbitMQ is stopped in an orderly way and started again."},
		{Name: FaultBrokerFreeze, Service: "rabbitmq", Doc: "RabbitMQ's processes are frozen, and go on."},
		{Name: FaultMemoryAlarm, Service: "rabbitmq", Doc: "RabbitMQ's memory alarm is raised: it reads no more from connections that publish."},
		{Name: FaultDiskAlarm, Service: "rabbitmq", Doc: "RabbitMQ's disk alarm is raised: it reads no more from connections that publish."},
		{Name: FaultCloseConnections, Repeats: true, Doc: "RabbitMQ closes connections of the run, over its management API."},
		{Name: FaultWorkersFail, Doc: "The handlers fail by the shares given.", NeedsFail: true},
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
