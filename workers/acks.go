package workers

import (
	"slices"
	"sort"
)

// acks gathers acknowledgements of one channel. Only contiguous finished tags may be acked with `multiple`: handlers finish
// out of order, and acking past an unfinished delivery would settle it, which loses it when its worker dies.
//
// open holds the deliveries that the broker counts as unacked, in tag order, so it is never longer than the prefetch. It
// belongs to the goroutine that owns the channel.
type acks struct {
	open     []openTag
	finished int // of open
}

type openTag struct {
	tag      uint64
	finished bool
}

// deliver notes a delivery. Tags rise by one on a channel.
func (a *acks) deliver(tag uint64) { a.open = append(a.open, openTag{tag: tag}) }

// finish notes that a delivery may be acked.
func (a *acks) finish(tag uint64) {
	if i, ok := a.index(tag); ok && !a.open[i].finished {
		a.open[i].finished = true
		a.finished++
	}
}

// remove forgets a delivery that is settled in another way. It reports false for one that was settled before.
func (a *acks) remove(tag uint64) bool {
	i, ok := a.index(tag)
	if !ok {
		return false
	}
	if a.open[i].finished {
		a.finished--
	}
	a.open = slices.Delete(a.open, i, i+1)
	return true
}

// prefix takes out the contiguous finished deliveries from the oldest on, and returns the last of their tags and how many
// they are; n is 0 when there is none.
func (a *acks) prefix() (upTo uint64, n int) {
	for n < len(a.open) && a.open[n].finished {
		upTo = a.open[n].tag
		n++
	}
	a.open = a.open[n:]
	a.finished -= n
	return upTo, n
}

// stragglers takes out the finished deliveries behind an unfinished one, to be acked one by one, so that a slow head of
// line does not hold up their acks.
func (a *acks) stragglers() []uint64 {
	if a.finished == 0 {
		return nil
	}
	var tags []uint64
	rest := a.open[:0]
	for _, t := range a.open {
		if t.finished {
			tags = append(tags, t.tag)
		} else {
			rest = append(rest, t)
		}
	}
	a.open, a.finished = rest, 0
	return tags
}

func (a *acks) index(tag uint64) (int, bool) {
	i := sort.Search(len(a.open), func(i int) bool { return a.open[i].tag >= tag })
	return i, i < len(a.open) && a.open[i].tag == tag
}
