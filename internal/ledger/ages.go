package ledger

import "time"

// View is the ledger at one instant: how old the oldest message is in each place, and how many lie where. Ages are 0 where
// nothing lies. They are exact but for the time between an event and its being told, plus, for messages back from a
// tier, the delay error of that tier.
type View struct {
	At        time.Duration
	Work      time.Duration            // oldest in the work queue, from its entry (sent, or the end of its tier's delay)
	Retry     time.Duration            // oldest in any tier
	Parking   time.Duration            // oldest in the parking lot
	Unsettled time.Duration            // oldest not settled anywhere, from scheduled
	Tiers     map[string]time.Duration // by nominal tier
	InTier    map[string]int
	Backlog   int // in the work queue, as far as events tell
	Held      int // delivered, unsettled
	Pending   int // due, not known to be at the broker
	RetryDebt int // in the tiers
}

// View looks at every page that may hold an unsettled message. It is meant to be called about ten times a second: a page
// without changes costs a few nanoseconds, one with changes about 10 µs.
func (l *Ledger) View(now time.Duration) View {
	total := emptyLook()
	pages := l.table()
	leading := true
	for i := int(l.lowest.Load()); i < len(pages); i++ {
		seen, done := pages[i].look(now)
		if done && leading {
			l.lowest.Store(int64(i + 1))
			continue
		}
		leading = false
		total.merge(seen)
	}
	return l.view(now, total)
}

func (l *Ledger) view(now time.Duration, total look) View {
	v := View{
		At: now, Work: age(now, total.ready), Unsettled: age(now, total.unsettled), Backlog: total.backlog, Held: total.held,
		Pending: total.inFlight, Tiers: make(map[string]time.Duration, len(l.tiers)), InTier: make(map[string]int, len(l.tiers)),
	}
	for i, name := range l.tiers {
		t := total.tiers[i]
		v.Tiers[name], v.InTier[name] = age(now, t.oldest), t.count
		v.Retry = max(v.Retry, v.Tiers[name])
		v.RetryDebt += t.count
	}
	if first := l.firstParked.Load(); first > 0 {
		v.Parking = age(now, time.Duration(first))
	}
	return v
}

func age(now, since time.Duration) time.Duration {
	if since == never {
		return 0
	}
	return max(0, now-since)
}
