package fault

import "context"

// WorkersFail lets handlers fail by themselves for a while.
type WorkersFail struct {
	Open      func() // puts the failure shares in place
	Close     func() // takes them away
	Simulated func() int64
}

// KindWorkersFail is the kind of WorkersFail.
const KindWorkersFail = "workers.fail"

// KindWorkersFreeze is the kind of a Held fault that stops a process of workers.
const KindWorkersFreeze = "workers.freeze"

// Kind implements Fault.
func (*WorkersFail) Kind() string { return KindWorkersFail }

// Available implements Fault: it always is.
func (*WorkersFail) Available() error { return nil }

// Inject implements Fault.
func (w *WorkersFail) Inject(context.Context) error {
	w.Open()
	return nil
}

// Heal implements Fault.
func (w *WorkersFail) Heal(context.Context) error {
	w.Close()
	return nil
}

// Marks implements Fault.
func (w *WorkersFail) Marks() []Mark {
	return []Mark{{Name: "simulated_failures", Value: float64(w.Simulated())}}
}
