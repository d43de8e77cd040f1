package experiment

import (
	"sync/atomic"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// slow counts what took longer than a bound. It is safe for concurrent use.
type slow struct {
	bound time.Duration
	n     atomic.Int64
}

func (s *slow) took(d time.Duration) {
	if d > s.bound {
		s.n.Add(1)
	}
}

// slowness counts slow confirms and slow handler calls, by the bounds that the faults of the run ask for before anything runs. It
// hears a run only if there is such a fault.
type slowness struct {
	event.NopLoad
	event.NopWork
	confirms, handlers []*slow // not written to once the run goes on
}

// Settled implements event.LoadObserver.
func (s *slowness) Settled(e event.Settled) {
	if e.Outcome != broker.Confirmed {
		return
	}
	for _, one := range s.confirms {
		one.took(e.At - e.Sent)
	}
}

// Handled implements event.WorkObserver.
func (s *slowness) Handled(e event.Handled) {
	for _, one := range s.handlers {
		one.took(e.Finished - e.Started)
	}
}
