package ledger

import (
	"time"

	"spillway/internal/broker"
)

// place is where a message lies, as far as the events tell.
type place uint8

const (
	unseen   place = iota // not offered yet
	pending               // due, not (yet, or no longer) at the broker
	ready                 // in the work queue
	held                  // delivered, unsettled
	waiting               // in a retry tier, until due
	finished              // applied, refused or parked, or never to arrive
)

// fate is what the workers say came of a message. The verdict does not use it.
type fate uint8

const (
	fateNone fate = iota
	fateDone
	fateParked
)

// record is the state of one message: 32 bytes. All changes are small transitions, so that the simulator of a run and the
// run itself can share them.
type record struct {
	scheduled time.Duration
	entered   time.Duration // when it entered its place; for ready, the work queue
	due       time.Duration // waiting: when its tier lets it go
	place     place
	tier      uint8
	attempt   uint8 // the last attempt delivered, capped
	outcome   broker.Outcome
	fate      fate
	final     bool // nothing more will be published for it
	wasShed   bool
	delivered bool
}

func (r *record) arrive(scheduled time.Duration) {
	r.scheduled = scheduled
	if r.place == unseen {
		r.place, r.entered = pending, scheduled
	}
}

func (r *record) shed() { r.wasShed, r.final, r.place = true, true, finished }

// send notes a publish. The message is not in the queue until confirmed, but a worker may see it before we see the confirm.
func (r *record) send(at time.Duration) {
	if r.place == pending {
		r.entered = at
	}
}

// settle notes the outcome of a publish. Sent is when that publish was written: the message entered the queue after it.
func (r *record) settle(o broker.Outcome, final bool, sent time.Duration) {
	r.outcome, r.final = o, final
	switch {
	case r.place != pending:
	case o == broker.Confirmed:
		r.place, r.entered = ready, sent
	case final:
		r.place = finished
	}
}

// deliver notes a delivery and reports whether it is the message's first.
func (r *record) deliver(attempt int) (first bool) {
	first = !r.delivered
	r.delivered = true
	r.attempt = uint8(min(max(attempt, int(r.attempt)), 255))
	if r.place == finished && r.fate != fateNone {
		return first // a copy of something that is done
	}
	if r.place == waiting { // it left the tier when that let it go, and lay in the work queue since
		r.entered = r.due
	}
	r.place = held
	return first
}

// retry notes a confirmed copy in a tier. With a short tier the copy may have been delivered already; then it says nothing
// new.
func (r *record) retry(tier uint8, attempt int, at, due time.Duration) {
	if r.fate != fateNone || int(r.attempt) > attempt {
		return
	}
	r.place, r.tier, r.entered, r.due = waiting, tier, at, due
}

// release puts a held message back into the work queue, with the time it first entered it.
func (r *record) release() {
	if r.place == held {
		r.place = ready
	}
}

// finish notes what came of a message and returns its retries; first is false when that was known before.
func (r *record) finish(f fate) (retries int, first bool) {
	if r.fate != fateNone {
		return 0, false
	}
	r.fate, r.place = f, finished
	return max(int(r.attempt), 1) - 1, true
}

// closed reports whether nothing more is expected: the producer is through with the message, and it was worked on, or it
// never reached a queue.
func (r *record) closed() bool {
	return r.final && r.place == finished
}

// Bits of a compact record.
const (
	compactOutcome = 0b0000_0111
	compactShed    = 0b0000_1000
	compactOffered = 0b0001_0000
)

// compact returns what the account needs of a record in one byte.
func (r *record) compact() byte {
	b := byte(r.outcome)
	if r.wasShed {
		b |= compactShed
	}
	if r.place != unseen {
		b |= compactOffered
	}
	return b
}
