package experiment

import (
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
)

func TestOnlyWhatTookLongerThanTheBoundIsSlow(t *testing.T) {
	t.Parallel()
	confirms, handlers := &slow{bound: time.Second}, &slow{bound: time.Second}
	s := &slowness{confirms: []*slow{confirms}, handlers: []*slow{handlers}}
	for _, took := range []time.Duration{time.Second - 1, time.Second, time.Second + 1, time.Minute} {
		s.Settled(event.Settled{Sent: time.Hour, At: time.Hour + took, Outcome: broker.Confirmed})
		s.Settled(event.Settled{Sent: time.Hour, At: time.Hour + took, Outcome: broker.Unknown}) // no answer is not a slow one
		s.Handled(event.Handled{Started: time.Hour, Finished: time.Hour + took})
	}
	if c, h := confirms.n.Load(), handlers.n.Load(); c != 2 || h != 2 {
		t.Errorf("%d slow confirms and %d slow handler calls, want 2 each", c, h)
	}
}
