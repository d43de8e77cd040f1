package ledger

import (
	"math"
	"sync"
	"time"
)

// never stands for "no such time" in minima.
const never = time.Duration(math.MaxInt64)

// page holds the records of pageSize consecutive messages, or, when all of them are closed, one byte each; or one byte for
// all, when they ended alike, as they do on a path where nothing breaks.
type page struct {
	mu      sync.Mutex
	records []record // nil once compact
	compact []byte   // pageSize states once compact, or a single one that all share
	closed  int      // how many records are closed
	dirty   bool     // records changed since the last look
	seen    look     // the last look
}

// look is what one page has to say about ages and places at an instant.
type look struct {
	unsettled time.Duration // earliest scheduled among unsettled, never when none
	ready     time.Duration // earliest entry among those in the work queue
	nextDue   time.Duration // when the next waiting message leaves its tier: the look is stale from then on
	inFlight  int           // pending: due and not known to be at the broker
	backlog   int           // in the work queue
	held      int
	tiers     [maxTiers]tierLook
}

type tierLook struct {
	oldest time.Duration
	count  int
}

// maxTiers bounds the retry tiers of a topology. Three are usual.
const maxTiers = 16

func newPage() *page { return &page{records: make([]record, pageSize), dirty: true} }

// close counts a record that became closed (or, never seen so far, open again) and compacts the page with the last one.
// The caller holds the lock.
func (p *page) close(closed bool) {
	if !closed {
		p.closed--
		return
	}
	p.closed++
	if p.closed < pageSize {
		return
	}
	p.compact = compactOf(p.records)
	p.records = nil
}

// compactOf returns the states of records, or the one that they all have.
func compactOf(records []record) []byte {
	states := make([]byte, len(records))
	alike := true
	for i := range records {
		states[i] = records[i].compact()
		alike = alike && states[i] == states[0]
	}
	if alike {
		return []byte{states[0]}
	}
	return states
}

// state returns the compact form of the i-th record.
func (p *page) state(i int) byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.records != nil:
		return p.records[i].compact()
	case len(p.compact) == 1:
		return p.compact[0]
	default:
		return p.compact[i]
	}
}

// look returns the page's view at an instant; the last one serves as long as nothing changed and no tier let go. done is
// true for a compact page, which has nothing to say any more.
func (p *page) look(now time.Duration) (l look, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records == nil {
		return emptyLook(), true
	}
	if p.dirty || now >= p.seen.nextDue {
		p.seen, p.dirty = p.survey(now), false
	}
	return p.seen, false
}

func emptyLook() look {
	l := look{unsettled: never, ready: never, nextDue: never}
	for i := range l.tiers {
		l.tiers[i].oldest = never
	}
	return l
}

func (p *page) survey(now time.Duration) look {
	l := emptyLook()
	for i := range p.records {
		l.add(&p.records[i], now)
	}
	return l
}

// add takes one record into the view.
func (l *look) add(r *record, now time.Duration) {
	if r.place == unseen || r.place == finished {
		return
	}
	l.unsettled = min(l.unsettled, r.scheduled)
	switch r.place {
	case pending:
		l.inFlight++
	case ready:
		l.backlog++
		l.ready = min(l.ready, r.entered)
	case held:
		l.held++
	case waiting:
		l.addWaiting(r, now)
	}
}

// addWaiting takes a message of a tier into the view: past its due time it lies in the work queue.
func (l *look) addWaiting(r *record, now time.Duration) {
	if now >= r.due {
		l.backlog++
		l.ready = min(l.ready, r.due)
		return
	}
	l.nextDue = min(l.nextDue, r.due)
	t := &l.tiers[r.tier]
	t.count++
	t.oldest = min(t.oldest, r.entered)
}

// merge joins another page's view to this one.
func (l *look) merge(o look) {
	l.unsettled = min(l.unsettled, o.unsettled)
	l.ready = min(l.ready, o.ready)
	l.nextDue = min(l.nextDue, o.nextDue)
	l.inFlight += o.inFlight
	l.backlog += o.backlog
	l.held += o.held
	for i := range l.tiers {
		l.tiers[i].count += o.tiers[i].count
		l.tiers[i].oldest = min(l.tiers[i].oldest, o.tiers[i].oldest)
	}
}
