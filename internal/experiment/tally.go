package experiment

import (
	"sync/atomic"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/ledger"
)

// book is what a run knows of its messages: the ledger, or a tally in a run without observers.
type book interface {
	event.LoadObserver
	event.WorkObserver
	Counts() ledger.Counts
	View(now time.Duration) ledger.View
	Span() int64
	Account(t *ledger.Truth) ledger.Account
}

// tally stands in for every observer in a run that shows what observing costs: it knows no message, only how many were
// settled and acked, without which there would be no drain and no cost per message. These are two atomic additions a
// message; everything else that it hears it leaves alone. It is safe for concurrent use.
type tally struct {
	event.NopLoad
	event.NopWork
	shed     atomic.Int64
	again    atomic.Int64 // outcomes that were not a message's last
	outcomes [broker.Unknown + 1]atomic.Int64
	_        [64]byte // the workers' counter lies in a cache line of its own
	acked    atomic.Int64
}

// Shed implements event.LoadObserver.
func (t *tally) Shed(int64, time.Duration) { t.shed.Add(1) }

// Settled implements event.LoadObserver.
func (t *tally) Settled(e event.Settled) {
	t.outcomes[e.Outcome].Add(1)
	if !e.Final { // the rare case is counted, so that the usual one costs one addition
		t.again.Add(1)
	}
}

// Acked implements event.WorkObserver.
func (t *tally) Acked(n int, _ time.Duration) { t.acked.Add(int64(n)) }

// Counts returns what is known: settled messages stand for those offered and published.
func (t *tally) Counts() ledger.Counts {
	c := ledger.Counts{
		Shed: t.shed.Load(), Acked: t.acked.Load(), Confirmed: t.outcomes[broker.Confirmed].Load(),
		Returned: t.outcomes[broker.Returned].Load(), Nacked: t.outcomes[broker.Nacked].Load(), Unknown: t.outcomes[broker.Unknown].Load(),
	}
	c.Publishes = c.Confirmed + c.Returned + c.Nacked + c.Unknown
	c.Republished = t.again.Load()
	c.Offered = c.Publishes - c.Republished + c.Shed
	c.Applied = c.Acked // without observers nobody knows better, and the run is never a pass
	return c
}

// View returns the backlog by number, and no age.
func (t *tally) View(now time.Duration) ledger.View {
	c := t.Counts()
	return ledger.View{At: now, Backlog: int(max(0, c.Confirmed-c.Acked))}
}

// Span returns 0: no sequence is known, so the audit has nothing to hold what it reads against.
func (t *tally) Span() int64 { return 0 }

// Account returns the numbers with a verdict on none of them. No event says which messages had their last outcome
// unconfirmed, so of these it knows the sum alone.
func (t *tally) Account(*ledger.Truth) ledger.Account {
	c := t.Counts()
	confirmed := min(c.Confirmed, c.Offered-c.Shed)
	return ledger.Account{
		Offered: c.Offered, Shed: c.Shed, Confirmed: confirmed, Unanswered: c.Offered - c.Shed - confirmed, Publishes: c.Publishes,
		Republished: c.Republished, NotAudited: c.Offered, Unaudited: []string{"every message: this run had no observers"},
	}
}
