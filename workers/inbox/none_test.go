package inbox_test

import (
	"testing"

	"spillway/internal/event"
	"spillway/workers/inbox"
)

func TestNoneAppliesNothingAndNeedsNoPool(t *testing.T) {
	t.Parallel()
	box, err := inbox.New(inbox.StrategyNone, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is no duplicate: nothing was claimed
		if got, err := box.Apply(t.Context(), inbox.Claim{MessageID: "no uuid", Refuse: true}); got != event.Applied || err != nil {
			t.Errorf("Apply answered %v, %v; want applied", got, err)
		}
	}
	if err := inbox.Close(t.Context(), box); err != nil {
		t.Error(err)
	}
}
