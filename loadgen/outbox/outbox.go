// Package outbox takes orders to the broker by way of the database, as a producer does that must not lose an event: order
// and event are written in one transaction, and a relay publishes what was written. Beside it stand the two dual writes,
// which do without, to show what they lose.
//
//	arrival -> Writer: one transaction { orders, outbox } -> Relay: claim, publish, confirm, mark sent -> broker
//
// A Sink joins both ends for one run and takes the place of a publish.Publisher. The package speaks to the broker through
// the port, and never reads the tables to decide what to write.
//
// Invariants: one order is one transaction. A row is marked sent only after the broker confirmed it; one that was returned,
// nacked or not answered stays unsent and is published again under the same id. Rows are found by being unsent, never by
// being newer than the last one seen, so a transaction that commits late is not skipped. While a claim lives no other
// relay takes its rows. What may happen is that a row is published twice: after a crash between confirm and mark, and
// after an unanswered publish. Order among rows is not promised: relays overtake each other.
//
// What a claim costs. It is a transaction that stays open from the claim until the confirms are in and the marks are
// written, tens of milliseconds as a rule, and at most RelayConfig.Hold. Its row locks keep other relays away and end by
// themselves with its connection, so a dead relay holds up nothing; no lease has to be written, waited for, or renewed.
// The price: each claimed row is written twice (lock, then mark), and while a claim is open vacuum can remove nothing that
// died since it began, so dead entries gather at the left edge of the index that claims read (see floor).
package outbox

import (
	"time"

	"spillway/internal/broker"
	"spillway/loadgen/publish"
)

// Maker makes the messages of a run and the orders that they are about. publish.Factory is one. It is safe for concurrent
// use.
type Maker interface {
	Make(m *broker.Message, body []byte, seq int64, scheduled, sent time.Duration) []byte
	BadKind(seq int64) string
	Order(seq int64) (sku string, count int)
}

// maxBacklog bounds the arrivals that wait for a writer, 24 bytes each; more is shed at once. It is as long as that of
// publish.Publisher, so that the modes shed alike.
const maxBacklog = 1 << 18

// backlog is the arrivals that wait for a writer.
type backlog chan publish.Arrival

// offer hands an arrival in and reports false when there is no room.
func (b backlog) offer(a publish.Arrival) bool {
	select {
	case b <- a:
		return true
	default:
		return false
	}
}
