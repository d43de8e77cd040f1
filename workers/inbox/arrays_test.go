package inbox_test

import (
	"errors"
	"testing"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/workers/inbox"
)

func TestArraysApplyEveryMessageOnceAndSaySoWhenTheyDoNot(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 1, InitialStock: 100})
	arrays, err := inbox.NewArrays([]inbox.Claim{claim(1), claim(2), claim(3)})
	if err != nil || arrays.Len() != 3 {
		t.Fatalf("%d messages, %v", arrays.Len(), err)
	}
	if err := arrays.Send(t.Context(), db.Pool()); err != nil {
		t.Fatal(err)
	}
	var reserved int64
	if err := db.Pool().QueryRow(t.Context(), `select sum(reserved)::bigint from stock`).Scan(&reserved); err != nil || reserved != 6 {
		t.Errorf("%d units reserved, %v; want 2 for each of 3 messages", reserved, err)
	}
	if err := arrays.Send(t.Context(), db.Pool()); !errors.Is(err, inbox.ErrNotApplied) {
		t.Errorf("sent again they say %v", err)
	}
	bad := claim(4)
	bad.Count = 0
	if _, err := inbox.NewArrays([]inbox.Claim{bad}); !errors.Is(err, postgres.ErrInvalidInput) {
		t.Errorf("a message without units is %v", err)
	}
}
