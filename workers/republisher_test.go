package workers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"spillway/internal/event"
	"spillway/internal/timebase"
)

type links struct {
	event.NopLinks
	seen []string
}

func (l *links) Blocked(role string, blocked bool, at time.Duration) {
	l.seen = append(l.seen, fmt.Sprint(role, " ", blocked, " ", at))
}

func TestBackPressureOnTheCopiesIsTheRepublishers(t *testing.T) {
	t.Parallel()
	base, heard := timebase.New(), &links{}
	flow := blockedLink{heard, base}
	flow.Blocked(true, "low on memory", base.Start().Add(time.Second))
	flow.Blocked(false, "", base.Start().Add(3*time.Second))
	if want := []string{"republisher true 1s", "republisher false 3s"}; !slices.Equal(heard.seen, want) {
		t.Errorf("heard %v, want %v", heard.seen, want)
	}
}
