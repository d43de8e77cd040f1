package crew

import (
	"testing"
	"time"

	"spillway/internal/profile"
	"spillway/internal/timebase"
)

func TestWorkersAreDealtOutEvenlyAndNumberedOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ workers, processes int }{{1, 1}, {2, 2}, {5, 2}, {7, 3}, {256, 64}} {
		s := Spec{Workers: profile.Workers{Count: row.workers, RateLimit: 100}}
		first, rate := 0, 0.0
		for _, part := range s.split(row.processes) {
			if n := part.Workers.Count; part.First != first || n < row.workers/row.processes || n > row.workers/row.processes+1 {
				t.Errorf("%d workers over %d processes: %d from number %d", row.workers, row.processes, n, part.First)
			}
			first += part.Workers.Count
			rate += part.Workers.RateLimit
		}
		if first != row.workers || rate < 99.999 || rate > 100.001 {
			t.Errorf("%d workers over %d processes are %d in all, with a rate limit of %v", row.workers, row.processes, first, rate)
		}
	}
}

func TestABaseThatIsJoinedTellsTheSameTime(t *testing.T) {
	t.Parallel()
	base := timebase.New()
	joined := anchorOf(base).join()
	if apart := joined.Now() - base.Now(); apart.Abs() > time.Millisecond {
		t.Errorf("%v apart", apart)
	}
	if apart := joined.Start().Sub(base.Start()); apart.Abs() > time.Millisecond {
		t.Errorf("starts %v apart", apart)
	}
}
