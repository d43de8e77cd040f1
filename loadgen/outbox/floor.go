package outbox

import (
	"sync"
	"time"
)

// sweepEvery is how often a relay reads its table's unsent rows from the very first: how late a row can be found that
// became visible behind the floor.
const sweepEvery = 250 * time.Millisecond

// floor spares claims the dead part of the index. Rows marked sent leave entries behind at its left edge until vacuum has
// been, and every claim would walk over all of them. A sweep does; it sees the oldest row that is due, and the claims until
// the next sweep begin there.
//
// It is no memory of the last row published. A transaction that commits late puts its row behind the floor, and the next
// sweep finds it there: the floor delays, it never skips. It is safe for concurrent use.
type floor struct {
	mu    sync.Mutex
	at    time.Time // server's clock
	swept time.Time // ours; the zero time asks for a sweep
}

// next returns from where to claim. sweep means from the first row.
func (f *floor) next(now time.Time) (from time.Time, sweep bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.swept) < sweepEvery {
		return f.at, false
	}
	f.swept = now
	return time.Time{}, true
}

// saw notes what a claim took. A claim from the floor that took nothing asks for a sweep at once, so that nobody rests
// while a row waits.
func (f *floor) saw(sweep bool, rows []row) (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !sweep && len(rows) == 0:
		f.swept = time.Time{}
		return true
	case sweep && len(rows) > 0:
		f.at = rows[0].due
		for i := range rows {
			if rows[i].due.Before(f.at) {
				f.at = rows[i].due
			}
		}
	}
	return false
}
