package stack

import (
	"context"
	"sync"
	"syscall"
)

// Death says that a server ended which nobody had asked to end.
type Death struct {
	Service string
	Err     error // how it ended; never nil
}

// deathBuffer is more than one run can see before it gives up; of further ones nothing is told, and nobody waits.
const deathBuffer = 16

// deaths tells every listener. The zero value has none. Safe for use by several goroutines.
type deaths struct {
	mu        sync.Mutex
	listeners map[chan Death]struct{} // guarded by mu
}

// listen returns a channel of what is told from now on. It is closed when ctx ends.
func (d *deaths) listen(ctx context.Context) <-chan Death {
	heard := make(chan Death, deathBuffer)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listeners == nil {
		d.listeners = map[chan Death]struct{}{}
	}
	d.listeners[heard] = struct{}{}
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.listeners, heard)
		close(heard)
	})
	return heard
}

func (d *deaths) tell(one Death) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for heard := range d.listeners {
		select {
		case heard <- one:
		default: // full: it has heard enough to give up
		}
	}
}

// endsServer reports whether a signal asks a server to end: what comes after it is no death of its own.
func endsServer(signal syscall.Signal) bool {
	switch signal {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT:
		return true
	default:
		return false
	}
}
