package fault

import (
	"context"
	"fmt"
)

// Held is a fault that lasts for as long as something is held: connections, a lock, a missing binding, a slow network. What is
// to be used is used once before and, until it works, after.
type Held struct {
	Name string
	// Unavailable says why it cannot be had here, in words that follow "is not available here: "; "" when it can.
	Unavailable string
	// Hold takes hold, and returns what lets go. When it fails, nothing is held.
	Hold func(ctx context.Context) (release func(ctx context.Context) error, err error)
	// Ping uses what is broken once.
	Ping func(ctx context.Context) error
	// Counts returns the marks.
	Counts func() []Mark

	release func(ctx context.Context) error // nil while nothing is held
}

// Kind implements Fault.
func (h *Held) Kind() string { return h.Name }

// Available implements Fault.
func (h *Held) Available() error {
	if h.Unavailable != "" {
		return fmt.Errorf("%w: %s", ErrUnavailable, h.Unavailable)
	}
	return nil
}

// Inject implements Fault.
func (h *Held) Inject(ctx context.Context) error {
	if err := ping(ctx, h.Ping); err != nil {
		return fmt.Errorf("not well before %s: %w", h.Name, err)
	}
	var err error
	h.release, err = h.Hold(ctx)
	return err
}

// Heal implements Fault.
func (h *Held) Heal(ctx context.Context) error {
	if h.release != nil {
		if err := h.release(ctx); err != nil {
			return err
		}
		h.release = nil
	}
	return healthy(ctx, h.Ping)
}

// Marks implements Fault.
func (h *Held) Marks() []Mark { return h.Counts() }
