package ledger

import (
	"errors"
	"fmt"
)

// ErrEvents is returned when the messages that were refused, the events of refusals in the outbox, and the distinct events at
// the broker are not the same.
var ErrEvents = errors.New("refused messages, rows of their events and distinct events at the broker differ")

// Events is what the servers hold of the outgoing events of refusals, by id. It is filled by the audit, one goroutine. The
// zero value is ready for use; it takes about 50 bytes an event.
type Events struct {
	found   map[[16]byte]eventMark
	account EventsAccount
}

// eventMark says where an event was found.
type eventMark uint8

const (
	eventWritten eventMark = 1 << iota
	eventSent
	eventLying
)

// EventsAccount is what came of the outgoing events.
type EventsAccount struct {
	Refused    int64 // messages with a refusal in the effect log
	Rows       int64 // events in the outbox
	Unsent     int64 // of these, not marked sent
	Distinct   int64 // ids of events at the broker
	Duplicates int64 // events at the broker beyond the first of each id: published more than once, which is allowed

	RefusedWithoutRow  int64 // refused messages of which no event was written
	RowsWithoutRefusal int64 // events of messages that were not refused
	SentWithoutEvent   int64 // rows marked sent whose event is not at the broker
	EventsWithoutRow   int64 // events at the broker that no row has
}

// Refused notes how many messages have a refusal in the effect log.
func (e *Events) Refused(messages int64) { e.account.Refused = messages }

// RefusedWithoutRow notes a refused message of which no event was written.
func (e *Events) RefusedWithoutRow() { e.account.RefusedWithoutRow++ }

// Written notes the row of an event: whether it is marked sent, and whether the message that it is about was refused.
func (e *Events) Written(id [16]byte, sent, refused bool) {
	e.account.Rows++
	if !refused {
		e.account.RowsWithoutRefusal++
	}
	if !sent {
		e.account.Unsent++
		e.mark(id, eventWritten)
		return
	}
	e.mark(id, eventWritten|eventSent)
}

// Lying notes one copy of an event found at the broker.
func (e *Events) Lying(id [16]byte) {
	if e.found[id]&eventLying != 0 {
		e.account.Duplicates++
		return
	}
	e.account.Distinct++
	e.mark(id, eventLying)
}

func (e *Events) mark(id [16]byte, m eventMark) {
	if e.found == nil {
		e.found = make(map[[16]byte]eventMark)
	}
	e.found[id] |= m
}

// Account compares what was noted, id by id. Call it when all is.
func (e *Events) Account() EventsAccount {
	a := e.account
	for _, m := range e.found {
		switch {
		case m&eventSent != 0 && m&eventLying == 0:
			a.SentWithoutEvent++
		case m&eventWritten == 0:
			a.EventsWithoutRow++
		}
	}
	return a
}

// Broken returns an error that wraps ErrEvents and names the numbers, or nil when every refused message has its event in the
// outbox and at the broker, and nothing else is there. A row that is unsent breaks it too: its event is not lost, but its
// refusal has not been told to anybody.
func (a *EventsAccount) Broken() error {
	equal := a.Refused == a.Rows && a.Rows == a.Distinct
	if equal && a.RefusedWithoutRow+a.RowsWithoutRefusal+a.SentWithoutEvent+a.EventsWithoutRow == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d refused, %d rows, %d distinct events; %d refused without a row, %d rows of messages not refused, "+
		"%d rows marked sent without an event, %d rows unsent, %d events without a row", ErrEvents, a.Refused, a.Rows, a.Distinct,
		a.RefusedWithoutRow, a.RowsWithoutRefusal, a.SentWithoutEvent, a.Unsent, a.EventsWithoutRow)
}
