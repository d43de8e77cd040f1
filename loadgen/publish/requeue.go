package publish

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"

	"spillway/internal/broker"
)

// requeue holds the messages to be published again until their wait is over. The arrivals under way bound its size. It
// is safe for concurrent use: the settling goroutine puts in, the publishing one takes out.
type requeue struct {
	mu   sync.Mutex
	heap waitHeap
	wake chan struct{} // one token: the earliest time may have changed
}

type waiting struct {
	slot slot
	due  time.Time
}

func newRequeue() *requeue { return &requeue{wake: make(chan struct{}, 1)} }

// add puts a message in, due after the wait.
func (q *requeue) add(s slot, wait time.Duration) {
	q.mu.Lock()
	heap.Push(&q.heap, waiting{s, time.Now().Add(wait)})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // a token is there already
	}
}

// take returns a message whose wait is over. Otherwise it returns how long the earliest has to wait, negative for none.
func (q *requeue) take() (s slot, wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heap) == 0 {
		return slot{}, -1, false
	}
	if wait = time.Until(q.heap[0].due); wait > 0 {
		return slot{}, wait, false
	}
	return heap.Pop(&q.heap).(waiting).slot, 0, true
}

// republishBackoff spaces the tries of one message: a broker that refuses or has just died is not helped by haste.
var republishBackoff = broker.Backoff{Min: 20 * time.Millisecond, Max: 2 * time.Second}

// republishDelay returns the wait after the given number of tries, at least 1.
func republishDelay(tries int) time.Duration {
	return republishBackoff.Delay(tries-1, rand.Float64())
}

// waitHeap implements heap.Interface, the earliest first.
type waitHeap []waiting

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *waitHeap) Push(x any)        { *h = append(*h, x.(waiting)) }
func (h *waitHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
