package profile

// Names of the faults.
const (
	FaultPostgresStop = "postgres.stop"
	FaultWorkersFail  = "workers.fail"
)

// FaultKind is one row of the table of faults. A new fault is one row here and one implementation in the fault package.
type FaultKind struct {
	Name      string
	Doc       string
	NeedsFail bool // takes, and needs, the shares under `fail`
}

// FaultKinds returns the known faults, in the order in which they are listed.
func FaultKinds() []FaultKind {
	return []FaultKind{
		{Name: FaultPostgresStop, Doc: "The PostgreSQL server is stopped and started again."},
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
