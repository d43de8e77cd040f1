package experiment

import (
	"context"
	"sync"

	"spillway/internal/stack"
)

// deaths keeps the servers of ours that ended by themselves during the run. What such a run measured is their end.
type deaths struct {
	mu   sync.Mutex // guards list
	list []stack.Death
}

// follow listens until ctx ends, and calls died when a server that messages go through is gone: offering more would
// measure nothing. A server that was given by address is not ours, and Prometheus has no message in it.
func (d *deaths) follow(ctx context.Context, r *run, died func()) {
	if r.o.Servers.Control == nil {
		return
	}
	for death := range r.o.Servers.Control.Deaths(ctx) {
		r.say("%s ended by itself: %v", death.Service, death.Err)
		if death.Service == stack.Prometheus || r.controlOf(death.Service) == nil {
			continue
		}
		d.mu.Lock()
		d.list = append(d.list, death)
		d.mu.Unlock()
		died()
	}
}

func (d *deaths) seen() []stack.Death {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.list
}
