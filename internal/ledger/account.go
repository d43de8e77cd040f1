package ledger

import (
	"fmt"
	"math/bits"

	"spillway/internal/broker"
)

// maxSamples bounds the sequences named for each broken guarantee.
const maxSamples = 10

// Account is what came of every message, over distinct ids. See docs/measurement.md for each definition.
type Account struct {
	Offered, Shed                        int64
	Confirmed, Returned, Nacked, Unknown int64 // last outcome of each id
	Unanswered                           int64 // offered, but with no outcome at all: the producer was stopped before it
	OutboxPending                        int64 // of these, in the outbox, unsent
	Publishes, Republished               int64

	// The fates: each id has one, the first that is true.
	Applied, Refused, Parked, Queued, Expired, Lost, NeverSent int64

	// Of ways of publishing through a database: what became of orders and their events.
	Orders, OrdersWithoutEvent, EventsWithoutOrder int64

	DuplicateEffects int64 // effects beyond the first, over all ids
	MissingEffects   int64 // ids claimed in the inbox with no effect
	Overlaps         int64 // ids found in two places, applied and parked for example
	Foreign          int64 // things found that carry no sequence of this run
	Unaudited        []string
	NotAudited       int64 // ids found nowhere while a place could not be read: lost or not, nobody can say

	// Samples names up to ten sequences for each broken guarantee.
	LostSamples, DuplicateSamples, MissingSamples []int64
}

// Account joins the producer's outcomes with the truth. Call it when no more events come.
func (l *Ledger) Account(t *Truth) Account {
	c := l.Counts()
	a := Account{
		Offered: c.Offered, Publishes: c.Publishes, Republished: c.Republished,
		DuplicateEffects: t.excess, Foreign: t.foreign, Unaudited: t.unaudited,
	}
	pages := l.table()
	for seq := range int64(len(t.marks)) {
		state := byte(0)
		if i := int(seq >> pageBits); i < len(pages) {
			state = pages[i].state(int(seq & (pageSize - 1)))
		}
		if state&compactOffered == 0 { // a sequence that never became due
			a.Foreign += int64(bits.OnesCount16(uint16(t.marks[seq])))
			continue
		}
		a.outcome(state, t.marks[seq])
		a.fate(seq, state, t)
	}
	a.doubtAbsences(t)
	return a
}

// doubtAbsences takes back what is concluded from not finding something, where a place could not be read.
func (a *Account) doubtAbsences(t *Truth) {
	if len(t.unaudited) == 0 {
		return
	}
	a.NotAudited, a.Lost, a.LostSamples = a.Lost, 0, nil
	if t.databaseUnread {
		a.MissingEffects, a.MissingSamples = 0, nil
	}
}

func (a *Account) outcome(state byte, m mark) {
	if state&compactShed != 0 {
		a.Shed++
		return
	}
	if state&compactOutcome == 0 && m&markPending != 0 {
		a.OutboxPending++
	}
	*a.outcomeCount(broker.Outcome(state & compactOutcome))++
}

func (a *Account) outcomeCount(o broker.Outcome) *int64 {
	switch o {
	case broker.Confirmed:
		return &a.Confirmed
	case broker.Returned:
		return &a.Returned
	case broker.Nacked:
		return &a.Nacked
	case broker.Unknown:
		return &a.Unknown
	default:
		return &a.Unanswered
	}
}

// fate finds the first that is true: applied | refused > parked > queued > expired > lost. Only a confirmed id can be
// lost; one that was never confirmed and is nowhere was never the broker's to keep.
func (a *Account) fate(seq int64, state byte, t *Truth) {
	m := t.marks[seq]
	switch {
	case m&markApplied != 0:
		a.Applied++
	case m&markRefused != 0:
		a.Refused++
	case m&markParked != 0:
		a.Parked++
	case m&(markWork|markTier) != 0:
		a.Queued++
	case m&markExpirable != 0:
		a.Expired++
	case broker.Outcome(state&compactOutcome) == broker.Confirmed:
		a.Lost++
		a.LostSamples = sample(a.LostSamples, seq)
	default:
		a.NeverSent++
	}
	a.check(seq, m, t)
	a.pair(state, m, t)
}

// pair counts orders and events that lack each other. A pending event is not lacking: a relay will publish it.
func (a *Account) pair(state byte, m mark, t *Truth) {
	confirmed := broker.Outcome(state&compactOutcome) == broker.Confirmed
	switch {
	case m&markOrdered != 0:
		a.Orders++
		if !confirmed && m&markPending == 0 {
			a.OrdersWithoutEvent++
		}
	case t.ordered && confirmed:
		a.EventsWithoutOrder++
	}
}

func (a *Account) check(seq int64, m mark, t *Truth) {
	if t.effects[seq] > 1 {
		a.DuplicateSamples = sample(a.DuplicateSamples, seq)
	}
	if m&markClaimed != 0 && t.effects[seq] == 0 {
		a.MissingEffects++
		a.MissingSamples = sample(a.MissingSamples, seq)
	}
	if bits.OnesCount16(uint16(m.places())) > 1 {
		a.Overlaps++
	}
}

// places folds a mark to one bit for each distinct place: done, parked, queued.
func (m mark) places() mark {
	var p mark
	if m&(markApplied|markRefused) != 0 {
		p |= markApplied
	}
	if m&(markWork|markTier) != 0 {
		p |= markWork
	}
	return p | m&markParked
}

func sample(samples []int64, seq int64) []int64 {
	if len(samples) < maxSamples {
		return append(samples, seq)
	}
	return samples
}

// HeldByBroker takes messages that the broker itself holds, on their way to a dead-letter target that refuses them, out of
// the lost: nobody can read their ids, so they are known by number only. They are queued, wherever they will end.
func (a *Account) HeldByBroker(n int64) {
	n = min(n, a.Lost)
	a.Lost -= n
	a.Queued += n
	if n > 0 {
		a.LostSamples = nil // any of them may be one that is held
	}
}

// Balance checks that the account adds up; an error is a defect of spillway, and makes a run invalid.
//
//	offered   = shed + confirmed + returned + nacked + unknown + unanswered
//	offered   = applied + refused + parked + queued + expired + lost + not audited + never sent
//	publishes = offered - shed - unanswered + republished, when every unanswered id was never written
func (a *Account) Balance() error {
	outcomes := a.Shed + a.Confirmed + a.Returned + a.Nacked + a.Unknown + a.Unanswered
	if outcomes != a.Offered {
		return fmt.Errorf("%w: offered %d, but the outcomes add up to %d", ErrUnbalanced, a.Offered, outcomes)
	}
	fates := a.Applied + a.Refused + a.Parked + a.Queued + a.Expired + a.Lost + a.NotAudited + a.NeverSent
	if fates != a.Offered {
		return fmt.Errorf("%w: offered %d, but the fates add up to %d", ErrUnbalanced, a.Offered, fates)
	}
	if first := a.Publishes - a.Republished; first > a.Offered-a.Shed || first < a.Offered-a.Shed-a.Unanswered {
		return fmt.Errorf("%w: %d first publishes of %d offered, %d shed, %d unanswered",
			ErrUnbalanced, first, a.Offered, a.Shed, a.Unanswered)
	}
	return nil
}
