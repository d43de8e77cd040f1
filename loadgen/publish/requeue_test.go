package publish

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func waitingSlot(seq int64) slot { return slot{arrival: Arrival{Seq: seq}} }

func TestMessagesComeOutInTheOrderOfTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newRequeue()
		if _, wait, ok := q.take(); ok || wait >= 0 {
			t.Errorf("an empty queue gave %v, wait %v; want a negative wait", ok, wait)
		}
		for _, ms := range []int64{30, 10, 20, 0} {
			q.add(waitingSlot(ms), time.Duration(ms)*time.Millisecond)
		}
		for _, want := range []int64{0, 10, 20, 30} {
			s, wait, ok := q.take()
			if !ok {
				if wait != 10*time.Millisecond {
					t.Errorf("message %d: wait %v, want 10ms", want, wait)
				}
				time.Sleep(wait)
				s, _, ok = q.take()
			}
			if !ok || s.arrival.Seq != want {
				t.Errorf("got message %d, %v; want %d", s.arrival.Seq, ok, want)
			}
		}
		if _, wait, ok := q.take(); ok || wait >= 0 {
			t.Error("the queue is not empty in the end")
		}
	})
}

func TestAnEarlierMessageWakesTheTaker(t *testing.T) {
	t.Parallel()
	q := newRequeue()
	q.add(waitingSlot(1), time.Hour)
	<-q.wake
	q.add(waitingSlot(2), time.Minute)
	q.add(waitingSlot(3), time.Second)
	<-q.wake
	select {
	case <-q.wake:
		t.Error("two tokens: the taker would wake for nothing")
	default:
	}
}

func TestTheQueueServesTwoGoroutines(t *testing.T) {
	t.Parallel()
	q := newRequeue()
	const n = 2000
	var adding sync.WaitGroup
	for part := range int64(4) {
		adding.Go(func() {
			for i := range int64(n / 4) {
				q.add(waitingSlot(part*n/4+i), 0)
			}
		})
	}
	seen := map[int64]bool{}
	for len(seen) < n {
		if s, _, ok := q.take(); ok {
			if seen[s.arrival.Seq] {
				t.Fatalf("message %d came out twice", s.arrival.Seq)
			}
			seen[s.arrival.Seq] = true
			continue
		}
		<-q.wake
	}
	adding.Wait()
}

func TestTriesAreSpacedByAGrowingWait(t *testing.T) {
	t.Parallel()
	for tries, want := range map[int]time.Duration{1: 20 * time.Millisecond, 2: 40 * time.Millisecond, 7: 1280 * time.Millisecond, 8: 2 * time.Second, 1000: 2 * time.Second} {
		for range 50 {
			if got := republishDelay(tries); got < want/2 || got > want {
				t.Errorf("after %d tries the wait is %v, want %v to %v", tries, got, want/2, want)
			}
		}
	}
}
