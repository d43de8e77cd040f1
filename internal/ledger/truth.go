package ledger

// Truth is what the servers really hold at the end of a run, by sequence: effects and claims from PostgreSQL, messages
// lying in queues from the broker. It is filled by the audit, one goroutine, and read once by Account. It takes three bytes
// a message.
//
// The zero value is not usable; call NewTruth.
type Truth struct {
	marks   []mark
	effects []uint8 // rows in the effect log, capped at 255; the sum is kept exact in excess
	excess  int64   // effects above the first, over all ids
	ordered bool    // there are orders
	foreign int64   // things found that carry no sequence of this run

	unaudited      []string
	databaseUnread bool
}

// mark says where a message was found.
type mark uint16

const (
	markApplied mark = 1 << iota
	markRefused
	markClaimed
	markParked
	markWork
	markTier
	markOrdered   // its order is committed
	markPending   // its outbox row is unsent
	markExpirable // the workers parked it, and parking lets messages expire
)

// Place is a kind of queue in which the audit found a message.
type Place uint8

// The kinds of queue.
const (
	InWork Place = iota
	InTier
	InParking
)

// NewTruth makes room for the sequences 0 to span-1; see Ledger.Span.
func NewTruth(span int64) *Truth {
	return &Truth{marks: make([]mark, span), effects: make([]uint8, span)}
}

// Effects notes the rows of one message in the effect log.
func (t *Truth) Effects(seq int64, applied, refused int64) {
	if !t.known(seq) {
		t.foreign += applied + refused
		return
	}
	if applied > 0 {
		t.marks[seq] |= markApplied
	}
	if refused > 0 {
		t.marks[seq] |= markRefused
	}
	before := int64(t.effects[seq])
	after := before + applied + refused
	t.excess += max(0, after-1) - max(0, before-1)
	t.effects[seq] = uint8(min(after, 255))
}

// Claimed notes a message whose id is in the inbox.
func (t *Truth) Claimed(seq int64) { t.mark(seq, markClaimed) }

// Lying notes a message found in a queue.
func (t *Truth) Lying(seq int64, where Place) {
	t.mark(seq, [...]mark{InWork: markWork, InTier: markTier, InParking: markParked}[where])
}

// Ordered notes a message whose order is committed. Only ways of publishing through a database have orders.
func (t *Truth) Ordered(seq int64) {
	t.ordered = true
	t.mark(seq, markOrdered)
}

// Pending notes a message whose outbox row is not marked sent.
func (t *Truth) Pending(seq int64) { t.mark(seq, markPending) }

// Expirable notes a message that was parked in a parking lot with a retention, so that its absence there is an expiry.
func (t *Truth) Expirable(seq int64) { t.mark(seq, markExpirable) }

// Unaudited notes a place that could not be read. A run with one is never passed.
func (t *Truth) Unaudited(what string) { t.unaudited = append(t.unaudited, what) }

// UnreadDatabase notes that claims and effects could not be read: nothing follows from not having seen one.
func (t *Truth) UnreadDatabase(why string) {
	t.databaseUnread = true
	t.Unaudited("the database: " + why)
}

func (t *Truth) mark(seq int64, m mark) {
	if !t.known(seq) {
		t.foreign++
		return
	}
	t.marks[seq] |= m
}

func (t *Truth) known(seq int64) bool { return seq >= 0 && seq < int64(len(t.marks)) }
