package ledger_test

import (
	"errors"
	"testing"

	"spillway/internal/ledger"
)

// event n's id.
func eventID(n byte) [16]byte { return [16]byte{15: n} }

func TestEventsOfRefusalsAreComparedIDByID(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		note func(*ledger.Events)
		want ledger.EventsAccount
		fine bool
	}{
		"nothing refused is nothing to tell": {func(*ledger.Events) {}, ledger.EventsAccount{}, true},
		"each refusal has its row and its event": {func(e *ledger.Events) {
			e.Refused(2)
			e.Written(eventID(1), true, true)
			e.Written(eventID(2), true, true)
			e.Lying(eventID(2))
			e.Lying(eventID(1))
		}, ledger.EventsAccount{Refused: 2, Rows: 2, Distinct: 2}, true},
		"an event that was published three times is two duplicates, and no fault": {func(e *ledger.Events) {
			e.Refused(1)
			e.Lying(eventID(1))
			e.Lying(eventID(1))
			e.Lying(eventID(1))
			e.Written(eventID(1), true, true)
		}, ledger.EventsAccount{Refused: 1, Rows: 1, Distinct: 1, Duplicates: 2}, true},
		"an event that arrived before its relay died is there, whatever its mark says": {func(e *ledger.Events) {
			e.Refused(1)
			e.Written(eventID(1), false, true)
			e.Lying(eventID(1))
		}, ledger.EventsAccount{Refused: 1, Rows: 1, Unsent: 1, Distinct: 1}, true},
		"a row marked sent without an event": {func(e *ledger.Events) {
			e.Refused(1)
			e.Written(eventID(1), true, true)
		}, ledger.EventsAccount{Refused: 1, Rows: 1, SentWithoutEvent: 1}, false},
		"a row that was not sent": {func(e *ledger.Events) {
			e.Refused(1)
			e.Written(eventID(1), false, true)
		}, ledger.EventsAccount{Refused: 1, Rows: 1, Unsent: 1}, false},
		"a refusal without a row": {func(e *ledger.Events) {
			e.Refused(1)
			e.RefusedWithoutRow()
		}, ledger.EventsAccount{Refused: 1, RefusedWithoutRow: 1}, false},
		"a row without a refusal, with the numbers made equal by a refusal without a row": {func(e *ledger.Events) {
			e.Refused(1)
			e.RefusedWithoutRow()
			e.Written(eventID(1), true, false)
			e.Lying(eventID(1))
		}, ledger.EventsAccount{Refused: 1, Rows: 1, Distinct: 1, RefusedWithoutRow: 1, RowsWithoutRefusal: 1}, false},
		"an event that no row has, with the numbers made equal by one that is lost": {func(e *ledger.Events) {
			e.Refused(1)
			e.Written(eventID(1), true, true)
			e.Lying(eventID(2))
		}, ledger.EventsAccount{Refused: 1, Rows: 1, Distinct: 1, SentWithoutEvent: 1, EventsWithoutRow: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e ledger.Events
			row.note(&e)
			got := e.Account()
			if got != row.want {
				t.Errorf("account %+v, want %+v", got, row.want)
			}
			if err := got.Broken(); (err == nil) != row.fine || err != nil && !errors.Is(err, ledger.ErrEvents) {
				t.Errorf("broken: %v, want none: %v", err, row.fine)
			}
		})
	}
}
