package event

import (
	"time"

	"spillway/internal/broker"
)

// Load fans load events out to several observers, in order.
type Load []LoadObserver

// Arrived implements LoadObserver.
func (l Load) Arrived(e Arrival) {
	for _, o := range l {
		o.Arrived(e)
	}
}

// Shed implements LoadObserver.
func (l Load) Shed(seq int64, at time.Duration) {
	for _, o := range l {
		o.Shed(seq, at)
	}
}

// Sent implements LoadObserver.
func (l Load) Sent(e Sent) {
	for _, o := range l {
		o.Sent(e)
	}
}

// Settled implements LoadObserver.
func (l Load) Settled(e Settled) {
	for _, o := range l {
		o.Settled(e)
	}
}

// Work fans work events out to several observers, in order.
type Work []WorkObserver

// Delivered implements WorkObserver.
func (w Work) Delivered(e Delivered) {
	for _, o := range w {
		o.Delivered(e)
	}
}

// Handled implements WorkObserver.
func (w Work) Handled(e Handled) {
	for _, o := range w {
		o.Handled(e)
	}
}

// Retried implements WorkObserver.
func (w Work) Retried(e Retried) {
	for _, o := range w {
		o.Retried(e)
	}
}

// Parked implements WorkObserver.
func (w Work) Parked(e Parked) {
	for _, o := range w {
		o.Parked(e)
	}
}

// Released implements WorkObserver.
func (w Work) Released(seq int64, at time.Duration) {
	for _, o := range w {
		o.Released(seq, at)
	}
}

// Acked implements WorkObserver.
func (w Work) Acked(n int, at time.Duration) {
	for _, o := range w {
		o.Acked(n, at)
	}
}

// Republished implements WorkObserver.
func (w Work) Republished(outcome broker.Outcome, at time.Duration) {
	for _, o := range w {
		o.Republished(outcome, at)
	}
}

// Links fans connection events out to several observers.
type Links []LinkObserver

// Reconnected implements LinkObserver.
func (l Links) Reconnected(role string, at time.Duration) {
	for _, o := range l {
		o.Reconnected(role, at)
	}
}

// ConsumerCancelled implements LinkObserver.
func (l Links) ConsumerCancelled(at time.Duration) {
	for _, o := range l {
		o.ConsumerCancelled(at)
	}
}

// Blocked implements LinkObserver.
func (l Links) Blocked(role string, blocked bool, at time.Duration) {
	for _, o := range l {
		o.Blocked(role, blocked, at)
	}
}

// Breakers fans breaker changes out to several observers.
type Breakers []BreakerObserver

// BreakerChanged implements BreakerObserver.
func (b Breakers) BreakerChanged(state string, at time.Duration) {
	for _, o := range b {
		o.BreakerChanged(state, at)
	}
}
