// Package fault breaks things on purpose, in a window of time, and proves that it did: a fault whose window shows no mark
// has tested nothing, and makes the run invalid.
//
// A Fault is one kind of accident; a Timeline carries several out at their times. Healing is verified by the fault
// itself and happens also when the run is stopped in the middle.
package fault

import (
	"context"
	"errors"
	"time"
)

// ErrUnavailable is returned when this machine, or these servers, cannot have the fault, or something else that a profile asks for. It is found before the load
// starts.
var ErrUnavailable = errors.New("not available here")

// ErrNotHealed is returned when what was broken could not be shown to work again.
var ErrNotHealed = errors.New("the fault could not be healed")

// Mark is one thing that a fault left behind in its window: a count that says "it was felt".
type Mark struct {
	Name  string
	Value float64
	Told  bool // says what was done, and proves nothing of its being felt
}

// Fault is one kind of accident. Its methods are called one after the other.
type Fault interface {
	// Kind is the name used in profiles.
	Kind() string
	// Available returns nil, or an error wrapping ErrUnavailable that says why not.
	Available() error
	// Inject breaks it, and returns when it is broken.
	Inject(ctx context.Context) error
	// Heal mends it, and returns when it is shown to be healthy again. Healing what is healthy is no error.
	Heal(ctx context.Context) error
	// Marks returns running counts of what the fault causes. The difference over the window is the evidence; a fault of
	// which no mark moved was not felt.
	Marks() []Mark
}

// Entry places a fault in time, as offsets on the run's time base.
type Entry struct {
	Fault Fault
	From  time.Duration
	For   time.Duration
}

// Window is what became of an entry.
type Window struct {
	Kind     string
	Start    time.Duration // when it was broken
	End      time.Duration // when it was shown to be healthy again
	Evidence []Mark
	Cut      bool  // the run was stopped before its time was over
	Err      error // of injecting or healing; nil
}

// Felt reports whether the fault left a mark.
func (w Window) Felt() bool {
	for _, m := range w.Evidence {
		if m.Value > 0 && !m.Told {
			return true
		}
	}
	return false
}

// evidence returns what moved between two readings of the same marks.
func evidence(before, after []Mark) []Mark {
	moved := make([]Mark, len(after))
	for i := range after {
		moved[i] = Mark{Name: after[i].Name, Value: after[i].Value - before[i].Value, Told: after[i].Told}
	}
	return moved
}
