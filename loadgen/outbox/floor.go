package outbox

import (
	"sync"
	"time"
)

const (
	// sweepEvery is how often a relay reads its table's unsent rows from the very first.
	sweepEvery = 250 * time.Millisecond
	// sweepShare bounds the time that sweeps take: one that took long is followed by a rest of so many times its length.
	sweepShare = 20
	// sweepAtMost bounds that rest, and with it how late a row can be found that became visible behind the floor.
	sweepAtMost = 10 * time.Second
	// floorSlack is how far the floor stays behind the present: rows carry the instant of their insert and become visible
	// with their commit, which is nearly always less than this later.
	floorSlack = 200 * time.Millisecond
)

// floor spares claims the dead part of the index. Rows marked sent leave entries behind at its left edge until vacuum has
// been, and a claim from the first row walks over all of them, and visits their rows: 0.5 s for 200,000, where one from
// the floor took 0.4 ms (ran, PostgreSQL 18.6). Claims therefore begin where the last one found its oldest row; a sweep
// now and then begins at the first.
//
// It is no memory of the last row published. A transaction that commits late, and a relay that dies with rows in its
// hands, leave rows behind the floor, and the next sweep finds them there: the floor delays, it never skips. It is safe for
// concurrent use.
type floor struct {
	mu   sync.Mutex
	at   time.Time // server's clock
	next time.Time // of the sweeps, our clock; the zero time is at once
}

// claim returns from where to claim. sweep means from the first row.
func (f *floor) claim(now time.Time) (from time.Time, sweep bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.next) {
		return f.at, false
	}
	f.next = now.Add(sweepEvery) // for the others, while this one is under way
	return time.Time{}, true
}

// saw notes what a claim took, which began at now on the server's clock. A sweep puts the floor where it must be; other
// claims only raise it.
func (f *floor) saw(sweep bool, rows []row, now time.Time) {
	at := now.Add(-floorSlack)
	for i := range rows {
		if rows[i].due.Before(at) {
			at = rows[i].due
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if sweep || at.After(f.at) {
		f.at = at
	}
}

// swept notes how long a sweep took.
func (f *floor) swept(now time.Time, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = now.Add(min(max(sweepEvery, sweepShare*took), sweepAtMost))
}
