// Package ledger keeps one state per message and, at the end, the account: what came of every one of them.
//
// It hears every event of a run (see package event) and answers two kinds of question. While the run goes on: how old is
// the oldest message in each place, how many are where. After it: the account, for which it is given the truth that was
// read from the servers (see Truth); what the workers believed is never part of a verdict.
//
// Messages are keyed by their dense sequence. Records live in pages of 4096; a page whose messages are all settled
// shrinks to one byte a message, or to a single byte when all ended alike, so memory is bounded by what is unsettled plus
// one byte for each message ever offered, and on a path where nothing breaks by what is unsettled alone.
// Each page has its own lock. The ledger never blocks on I/O.
package ledger

import (
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// pageSize is the number of messages in one page: 4096 records are 128 KiB, large enough that pages are few, small enough
// that one slow message keeps little alive.
const pageSize = 1 << pageBits

const pageBits = 12

// maxPages bounds the page table: 2^18 pages hold a billion messages, more than one run offers.
const maxPages = 1 << 18

// Ledger is the state of every message of one run. It implements event.LoadObserver and event.WorkObserver and is safe
// for concurrent use.
type Ledger struct {
	tiers []string
	tier  map[string]uint8 // name -> index; read-only after New

	mu    sync.Mutex              // held to make a page
	pages atomic.Pointer[[]*page] // replaced, never changed, when there is a new one: each event looks here, few make one

	counts      counters
	firstParked atomic.Int64 // offset of the first parking in nanoseconds, 0 none yet
	lowest      atomic.Int64 // index of the first page that may hold an unsettled message; only scan moves it
}

// New returns an empty ledger. tiers are the nominal names of the retry tiers.
func New(tiers []string) *Ledger {
	index := make(map[string]uint8, len(tiers))
	for i, name := range tiers {
		index[name] = uint8(i)
	}
	l := &Ledger{tiers: tiers, tier: index}
	l.pages.Store(new([]*page))
	return l
}

// counters are the sums that need no record. All are atomics, since events come from many goroutines.
type counters struct {
	offered, shed, publishes, republished         atomic.Int64
	delivered, redelivered, distinct, duplicates  atomic.Int64
	applied, refused, retried, parked, acked, bad atomic.Int64
	workerPublishes                               atomic.Int64
	outcomes                                      [broker.Unknown + 1]atomic.Int64
	retries                                       [maxRetriesCounted + 1]atomic.Int64
}

// maxRetriesCounted bounds the histogram of retries per message; the last bin holds all above.
const maxRetriesCounted = 64

// Counts is a snapshot of the sums, for progress lines and series.
type Counts struct {
	Offered, Shed, Publishes, Republished  int64
	Confirmed, Returned, Nacked, Unknown   int64 // answers seen, each publish counted
	Delivered, Redelivered, Distinct       int64
	Applied, Refused, Duplicates, Retried  int64
	Parked, Acked, Bad, PublishesByWorkers int64
	RetriesPerMessage                      map[int]int64
}

// Counts returns the sums so far. They are read one after the other, so they may differ by events under way.
func (l *Ledger) Counts() Counts {
	c := &l.counts
	return Counts{
		Offered: c.offered.Load(), Shed: c.shed.Load(), Publishes: c.publishes.Load(), Republished: c.republished.Load(),
		Confirmed: c.outcomes[broker.Confirmed].Load(), Returned: c.outcomes[broker.Returned].Load(),
		Nacked: c.outcomes[broker.Nacked].Load(), Unknown: c.outcomes[broker.Unknown].Load(),
		Delivered: c.delivered.Load(), Redelivered: c.redelivered.Load(), Distinct: c.distinct.Load(),
		Applied: c.applied.Load(), Refused: c.refused.Load(), Duplicates: c.duplicates.Load(), Retried: c.retried.Load(),
		Parked: c.parked.Load(), Acked: c.acked.Load(), Bad: c.bad.Load(), PublishesByWorkers: c.workerPublishes.Load(),
		RetriesPerMessage: c.histogram(),
	}
}

func (c *counters) histogram() map[int]int64 {
	out := map[int]int64{}
	for i := range c.retries {
		if n := c.retries[i].Load(); n > 0 {
			out[i] = n
		}
	}
	return out
}

// Arrived implements event.LoadObserver.
func (l *Ledger) Arrived(e event.Arrival) {
	l.counts.offered.Add(1)
	if e.Bad != "" {
		l.counts.bad.Add(1)
	}
	l.update(e.Seq, func(r *record) { r.arrive(e.Scheduled) })
}

// Shed implements event.LoadObserver.
func (l *Ledger) Shed(seq int64, _ time.Duration) {
	l.counts.shed.Add(1)
	l.update(seq, func(r *record) { r.shed() })
}

// Sent implements event.LoadObserver.
func (l *Ledger) Sent(e event.Sent) {
	l.counts.publishes.Add(1)
	if e.Republish {
		l.counts.republished.Add(1)
	}
	l.update(e.Seq, func(r *record) { r.send(e.At) })
}

// Settled implements event.LoadObserver.
func (l *Ledger) Settled(e event.Settled) {
	l.counts.outcomes[e.Outcome].Add(1)
	l.update(e.Seq, func(r *record) { r.settle(e.Outcome, e.Final, e.Sent) })
}

// Delivered implements event.WorkObserver.
func (l *Ledger) Delivered(e event.Delivered) {
	l.counts.delivered.Add(1)
	if e.Redelivered {
		l.counts.redelivered.Add(1)
	}
	first := false
	l.update(e.Seq, func(r *record) { first = r.deliver(e.Attempt) })
	if first {
		l.counts.distinct.Add(1)
	}
}

// Handled implements event.WorkObserver.
func (l *Ledger) Handled(e event.Handled) {
	switch e.Result {
	case event.Applied:
		l.counts.applied.Add(1)
	case event.Refused:
		l.counts.refused.Add(1)
	case event.Duplicate:
		l.counts.duplicates.Add(1)
	default:
		return // the message goes on; Retried or Parked will say where
	}
	l.finish(e.Seq, fateDone)
}

// Retried implements event.WorkObserver.
func (l *Ledger) Retried(e event.Retried) {
	l.counts.retried.Add(1)
	tier := l.tier[e.Tier]
	l.update(e.Seq, func(r *record) { r.retry(tier, e.Attempt, e.At, e.At+e.Delay) })
}

// Parked implements event.WorkObserver.
func (l *Ledger) Parked(e event.Parked) {
	l.counts.parked.Add(1)
	l.firstParked.CompareAndSwap(0, max(1, int64(e.At)))
	l.finish(e.Seq, fateParked)
}

// Released implements event.WorkObserver.
func (l *Ledger) Released(seq int64, _ time.Duration) {
	l.update(seq, func(r *record) { r.release() })
}

// Acked implements event.WorkObserver.
func (l *Ledger) Acked(n int, _ time.Duration) { l.counts.acked.Add(int64(n)) }

// Republished implements event.WorkObserver.
func (l *Ledger) Republished(broker.Outcome, time.Duration) { l.counts.workerPublishes.Add(1) }

// finish settles the work side of a message and counts its retries, once.
func (l *Ledger) finish(seq int64, f fate) {
	retries, first := 0, false
	l.update(seq, func(r *record) { retries, first = r.finish(f) })
	if first {
		l.counts.retries[min(retries, maxRetriesCounted)].Add(1)
	}
}

// update changes the record of one message under its page's lock. Messages without a sequence of this run, and those of
// a page that is already compact, are left alone: all there was to say of them has been said.
func (l *Ledger) update(seq int64, change func(*record)) {
	if seq < 0 || seq >= maxPages*pageSize {
		return
	}
	p := l.page(int(seq >> pageBits))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records == nil {
		return
	}
	r := &p.records[seq&(pageSize-1)]
	before := r.closed()
	change(r)
	p.dirty = true
	if after := r.closed(); after != before {
		p.close(after)
	}
}

// page returns the i-th page, made on first use.
func (l *Ledger) page(i int) *page {
	if pages := l.table(); i < len(pages) {
		return pages[i]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	pages := l.table()
	if i < len(pages) {
		return pages[i]
	}
	grown := make([]*page, i+1)
	for k := copy(grown, pages); k <= i; k++ {
		grown[k] = newPage()
	}
	l.pages.Store(&grown)
	return grown[i]
}

// Span returns a number above every sequence seen so far.
func (l *Ledger) Span() int64 { return int64(len(l.table())) * pageSize }

// table returns the pages that exist now.
func (l *Ledger) table() []*page { return *l.pages.Load() }
