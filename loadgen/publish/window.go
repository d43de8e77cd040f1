package publish

import (
	"sync"
	"time"

	"spillway/internal/broker"
)

// window is the slots of a publisher: one for each publish that has no answer yet. The publishing goroutine takes them, the
// driver's goroutine gives them back, many at a time; both hold the lock for some instructions.
type window struct {
	// slots is written by whoever holds a slot: the publishing goroutine until the message is out, the driver's after that.
	slots []slot

	mu        sync.Mutex
	free      []int // indices of free slots; guarded by mu
	open      int   // messages begun whose last outcome is not known; guarded by mu
	exhausted bool  // no more messages will be begun; guarded by mu

	freed   chan struct{} // one token: a slot may have become free
	drained chan struct{} // closed when no more messages are begun and none is open
}

// slot is one unsettled publish.
type slot struct {
	arrival Arrival
	sent    time.Duration
	tries   int
	replay  bool // it was confirmed, and is on its way again
}

func newWindow(size int) *window {
	w := &window{
		slots: make([]slot, size), free: make([]int, size), freed: make(chan struct{}, 1), drained: make(chan struct{}),
	}
	for i := range w.free {
		w.free[i] = i
	}
	return w
}

// take returns a free slot, if there is one.
func (w *window) take() (i int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.free) - 1
	if last < 0 {
		return 0, false
	}
	i = w.free[last]
	w.free = w.free[:last]
	return i, true
}

// begin puts a new message into a slot that was taken.
func (w *window) begin(i int, a Arrival) {
	w.slots[i] = slot{arrival: a}
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
}

// giveBack returns a slot that was not used.
func (w *window) giveBack(i int) {
	w.mu.Lock()
	w.free = append(w.free, i)
	w.mu.Unlock()
}

// release returns the slots of what was answered; finals is for how many of these messages that was the last outcome.
func (w *window) release(answers []broker.Settlement, finals int) {
	w.mu.Lock()
	for i := range answers {
		w.free = append(w.free, int(answers[i].Token))
	}
	w.open -= finals
	w.finish()
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default: // a token is there already
	}
}

// exhaust says that no more messages will be begun.
func (w *window) exhaust() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exhausted = true
	w.finish()
}

// finish closes drained once; mu is held.
func (w *window) finish() {
	if w.exhausted && w.open == 0 {
		w.exhausted = false
		close(w.drained)
	}
}
