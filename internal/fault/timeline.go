package fault

import (
	"context"
	"fmt"
	"sync"
	"time"

	"spillway/internal/broker"
	"spillway/internal/timebase"
)

// healTimeout bounds a heal, also after a stop: a server that does not come back within it is not coming back.
const healTimeout = 60 * time.Second

// Timeline carries out faults at their times.
type Timeline struct {
	base    *timebase.Base
	entries []Entry
	changed func(kind string, active bool, at time.Duration)

	mu      sync.Mutex // guards windows
	windows []Window
}

// NewTimeline returns a timeline. changed hears when a fault begins and when it is healed; it may come from several
// goroutines.
func NewTimeline(base *timebase.Base, entries []Entry, changed func(kind string, active bool, at time.Duration)) *Timeline {
	return &Timeline{base: base, entries: entries, changed: changed}
}

// Available returns why an entry cannot be carried out here, nil when all can.
func (t *Timeline) Available() error {
	for _, e := range t.entries {
		if err := e.Fault.Available(); err != nil {
			return fmt.Errorf("fault %s: %w", e.Fault.Kind(), err)
		}
	}
	return nil
}

// Run carries the timeline out. When ctx ends, faults that have not begun are left out and those under way are healed
// before Run returns.
func (t *Timeline) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, e := range t.entries {
		all.Go(func() { t.carryOut(ctx, e) })
	}
	all.Wait()
}

// Windows returns what became of the entries that were begun, in the order of their end.
func (t *Timeline) Windows() []Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Window(nil), t.windows...)
}

func (t *Timeline) carryOut(ctx context.Context, e Entry) {
	if !broker.Wait(ctx, e.From-t.base.Now()) {
		return
	}
	w := Window{Kind: e.Fault.Kind(), Start: t.base.Now()}
	before := e.Fault.Marks()
	t.changed(w.Kind, true, w.Start)
	w.Err = e.Fault.Inject(ctx)
	if w.Err == nil {
		broker.Wait(ctx, e.For) // from when it was broken, which may have taken a while
	}
	if w.Cut = ctx.Err() != nil; w.Cut {
		w.Err = nil // of a stop while it was being broken
	}
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
	defer cancel()
	if err := e.Fault.Heal(healing); err != nil {
		w.Err = both(w.Err, fmt.Errorf("%w: %s: %w", ErrNotHealed, w.Kind, err))
	}
	w.End = t.base.Now()
	w.Evidence = evidence(before, e.Fault.Marks())
	t.changed(w.Kind, false, w.End)
	t.mu.Lock()
	t.windows = append(t.windows, w)
	t.mu.Unlock()
}

// both returns one line for two errors, the first of which may be nil.
func both(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}
