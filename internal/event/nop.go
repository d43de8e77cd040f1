package event

import (
	"time"

	"spillway/internal/broker"
)

// NopLoad hears load events and does nothing. Embedded, it lets an observer implement only what it cares for.
type NopLoad struct{}

// Arrived implements LoadObserver.
func (NopLoad) Arrived(Arrival) {}

// Shed implements LoadObserver.
func (NopLoad) Shed(int64, time.Duration) {}

// Sent implements LoadObserver.
func (NopLoad) Sent(Sent) {}

// Settled implements LoadObserver.
func (NopLoad) Settled(Settled) {}

// NopWork hears work events and does nothing. Embedded, it lets an observer implement only what it cares for.
type NopWork struct{}

// Delivered implements WorkObserver.
func (NopWork) Delivered(Delivered) {}

// Handled implements WorkObserver.
func (NopWork) Handled(Handled) {}

// Retried implements WorkObserver.
func (NopWork) Retried(Retried) {}

// Parked implements WorkObserver.
func (NopWork) Parked(Parked) {}

// Released implements WorkObserver.
func (NopWork) Released(int64, time.Duration) {}

// Acked implements WorkObserver.
func (NopWork) Acked(int, time.Duration) {}

// Republished implements WorkObserver.
func (NopWork) Republished(broker.Outcome, time.Duration) {}

// NopLinks hears link events and does nothing.
type NopLinks struct{}

// Reconnected implements LinkObserver.
func (NopLinks) Reconnected(string, time.Duration) {}

// ConsumerCancelled implements LinkObserver.
func (NopLinks) ConsumerCancelled(time.Duration) {}

// Blocked implements LinkObserver.
func (NopLinks) Blocked(string, bool, time.Duration) {}
