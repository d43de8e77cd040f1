package inbox

import (
	"context"

	"spillway/internal/event"
)

// None answers Applied to every message and does nothing: no claim, no stock, no line in the effect log, no database. It is
// for finding the broker's and the client's ceiling. Nothing can be proved of what it "applied", so a run with it is never
// a pass. The zero value is ready to use.
type None struct{}

// Apply implements Inbox. It never fails, and calls the same message applied as often as it comes.
func (None) Apply(context.Context, Claim) (event.Result, error) { return event.Applied, nil }
