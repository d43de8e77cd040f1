package workers

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func delivered(tags ...uint64) *acks {
	a := &acks{}
	for _, tag := range tags {
		a.deliver(tag)
	}
	return a
}

func TestOnlyContiguousFinishedTagsAreAckedTogether(t *testing.T) {
	t.Parallel()
	a := delivered(1, 2, 3, 4, 5)
	a.finish(2)
	a.finish(3)
	if tag, n := a.prefix(); n != 0 {
		t.Fatalf("acked up to %d past the unfinished first delivery", tag)
	}
	a.finish(1)
	if tag, n := a.prefix(); tag != 3 || n != 3 {
		t.Fatalf("prefix %d of %d, want 3 of 3", tag, n)
	}
	a.finish(5)
	if tags := a.stragglers(); !slices.Equal(tags, []uint64{5}) {
		t.Fatalf("stragglers %v, want 5", tags)
	}
	a.finish(4)
	if tag, n := a.prefix(); tag != 4 || n != 1 {
		t.Fatalf("prefix %d of %d, want 4 of 1", tag, n)
	}
	if len(a.open) != 0 || a.finished != 0 {
		t.Fatalf("left %v, %d finished", a.open, a.finished)
	}
}

func TestADeliverySettledInAnotherWayIsForgotten(t *testing.T) {
	t.Parallel()
	a := delivered(1, 2, 3)
	a.finish(1)
	a.finish(3)
	a.remove(1)
	a.remove(2)
	a.remove(9)
	a.finish(9)
	if tag, n := a.prefix(); tag != 3 || n != 1 || a.finished != 0 {
		t.Fatalf("prefix %d of %d with %d finished, want 3 of 1 and none", tag, n, a.finished)
	}
}

// TestEveryDeliveryIsAckedOnce lets handlers finish in any order and flushes at any time: each tag is acked once, and a
// multiple ack never reaches past an unfinished delivery.
func TestEveryDeliveryIsAckedOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, model := &acks{}, map[uint64]bool{} // the model holds what the broker counts as unacked, true when finished
		settle := func(tag uint64) {
			if finished, open := model[tag]; !open || !finished {
				t.Fatalf("tag %d acked while open=%v finished=%v", tag, open, finished)
			}
			delete(model, tag)
		}
		for tag := uint64(1); tag <= 60; tag++ {
			a.deliver(tag)
			model[tag] = false
			for _, open := range slices.Sorted(keys(model)) {
				if r.IntN(4) == 0 {
					a.finish(open)
					model[open] = true
				}
			}
			switch r.IntN(3) {
			case 0:
				upTo, n := a.prefix()
				for _, open := range slices.Sorted(keys(model)) {
					if n > 0 && open <= upTo {
						settle(open)
					}
				}
			case 1:
				for _, straggler := range a.stragglers() {
					settle(straggler)
				}
			}
		}
		if len(a.open) != len(model) {
			t.Fatalf("%d open, the broker counts %d", len(a.open), len(model))
		}
	}
}

func keys(m map[uint64]bool) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
