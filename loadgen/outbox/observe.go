package outbox

import (
	"time"

	"spillway/internal/event"
)

// Relayed is one row that the broker confirmed.
type Relayed struct {
	Table string
	Seq   int64 // -1 for an event that is not one of the run's messages
	// Lag is from the writing of the row, by the server's clock just before its commit, to the confirm. It is made of the
	// row's age when it was claimed, which the server says, and the time since then on the run's clock, so no two clocks
	// are compared.
	Lag       time.Duration
	At        time.Duration
	Warmup    bool
	Duplicate bool // confirmed before; the lag is that of the later confirm
}

// RelayObserver hears of a relay. It must be safe for concurrent use and must not block.
type RelayObserver interface {
	// Claimed reports one batch, never an empty one.
	Claimed(table string, rows int, at time.Duration)
	Relayed(Relayed)
}

// Written is one order whose transaction is committed.
type Written struct {
	Seq       int64
	Scheduled time.Duration
	Began     time.Duration // when the first try was sent
	At        time.Duration // when COMMIT was answered
	Tries     int
	Warmup    bool
}

// WriteObserver hears of the writers. It must be safe for concurrent use and must not block.
type WriteObserver interface {
	Written(Written)
}

// Nop hears everything and does nothing.
type Nop struct{}

// Claimed implements RelayObserver.
func (Nop) Claimed(string, int, time.Duration) {}

// Relayed implements RelayObserver.
func (Nop) Relayed(Relayed) {}

// Written implements WriteObserver.
func (Nop) Written(Written) {}

// unarrived passes load events on but for arrivals, which the sink around has announced already.
type unarrived struct{ event.LoadObserver }

// Arrived implements event.LoadObserver.
func (unarrived) Arrived(event.Arrival) {}
