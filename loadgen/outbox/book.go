package outbox

import (
	"sync"
	"sync/atomic"

	"spillway/internal/broker"
)

// Book knows the rows of one table that were published and are not marked sent yet, and counts what its relays did. All
// relays of one table in a process share one, and it outlives each of them: that is how a row which a dead relay had
// published is known to be a duplicate when the next one publishes it. Its size is bounded by what the relays have in
// flight and what was answered, but not with a confirm. It is safe for concurrent use.
type Book struct {
	mu   sync.Mutex
	rows map[id]entry // guarded by mu

	claims, claimed, published, republished, duplicates, overlaps atomic.Int64
	outcomes                                                      [broker.Unknown + 1]atomic.Int64
	marked, lostClaims                                            atomic.Int64
}

// entry is one row that was published.
type entry struct {
	inFlight  bool
	confirmed bool // at least once
	last      broker.Outcome
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{rows: make(map[id]entry)} }

// Counts is what the relays of one table did so far.
type Counts struct {
	Claims      int64 // batches with at least one row
	Claimed     int64 // rows in them
	Published   int64 // writes to the broker
	Republished int64 // of these, writes of a row that had been published before
	Duplicates  int64 // of these, writes of a row that the broker had confirmed before: it holds the message twice
	Overlaps    int64 // of these, writes of a row that another relay had in flight: possible only after a lost claim
	Confirmed   int64
	Returned    int64
	Nacked      int64
	Unknown     int64
	Marked      int64 // rows marked sent
	LostClaims  int64 // claims whose transaction was lost before the marks were written
}

// Counts returns the sums. They are read one after the other, so they may differ by what is under way.
func (b *Book) Counts() Counts {
	return Counts{
		Claims: b.claims.Load(), Claimed: b.claimed.Load(), Published: b.published.Load(), Republished: b.republished.Load(),
		Duplicates: b.duplicates.Load(), Overlaps: b.overlaps.Load(), Confirmed: b.outcomes[broker.Confirmed].Load(),
		Returned: b.outcomes[broker.Returned].Load(), Nacked: b.outcomes[broker.Nacked].Load(),
		Unknown: b.outcomes[broker.Unknown].Load(), Marked: b.marked.Load(), LostClaims: b.lostClaims.Load(),
	}
}

func (b *Book) claim(rows int) {
	b.claims.Add(1)
	b.claimed.Add(int64(rows))
}

// publish notes a write about to be made. again means that the row was published before, duplicate that it was confirmed
// before.
func (b *Book) publish(row id) (again, duplicate bool) {
	b.mu.Lock()
	e, again := b.rows[row]
	overlap := e.inFlight
	b.rows[row] = entry{inFlight: true, confirmed: e.confirmed, last: e.last}
	b.mu.Unlock()
	b.published.Add(1)
	count(&b.republished, again)
	count(&b.duplicates, e.confirmed)
	count(&b.overlaps, overlap)
	return again, e.confirmed
}

func count(n *atomic.Int64, yes bool) {
	if yes {
		n.Add(1)
	}
}

// settle notes the outcome of a write.
func (b *Book) settle(row id, o broker.Outcome) {
	b.outcomes[o].Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[row] = entry{confirmed: b.rows[row].confirmed || o == broker.Confirmed, last: o}
}

// mark forgets rows that are marked sent: nothing publishes them again.
func (b *Book) mark(rows []id) {
	b.marked.Add(int64(len(rows)))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range rows {
		delete(b.rows, r)
	}
}

// Unroutable returns how many rows are unsent because their last publish was returned. They are tried again, but nobody
// can say when that will help, so a drain does not wait for them.
func (b *Book) Unroutable() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.rows {
		if e.last == broker.Returned && !e.confirmed {
			n++
		}
	}
	return n
}
