package arrival

import (
	"math/big"
	"time"
)

// regular yields the instants at which the integral of a shape passes whole numbers.
type regular struct {
	legs        []leg // those still to come, the current one first; every one holds an arrival
	next, total int64
	last        time.Duration
}

// leg is the schedule of one part.
type leg struct {
	until       int64 // the first arrival that is due after the part
	start, span time.Duration
	due         func(k int64) time.Duration // since the start of the part
}

func newRegular(p part) *regular {
	parts := []placed{place(p, 0, new(big.Rat))}
	if s, ok := p.(*sequence); ok {
		parts = s.parts
	}
	r := &regular{total: floor(p.expected())}
	reached := int64(0)
	for i := range parts {
		part := &parts[i]
		// Arrival k belongs to the part that the integral leaves k in, so a border at 2.5 has arrivals 0, 1 and 2 before it.
		until := min(r.total, ceil(new(big.Rat).Add(part.before, part.expected())))
		if until > reached {
			r.legs = append(r.legs, leg{until, part.start, part.Span(), part.schedule(part.before)})
			reached = until
		}
	}
	return r
}

// Next implements Process.
func (r *regular) Next() (time.Duration, bool) {
	if r.next == r.total {
		return 0, false
	}
	if r.next == r.legs[0].until {
		r.legs = r.legs[1:]
	}
	l := &r.legs[0]
	due := l.start + min(max(l.due(r.next), 0), l.span-1)
	r.next++
	r.last = max(r.last, due) // inverses in floats may go back by a rounding
	return r.last, true
}

// Total implements Process.
func (r *regular) Total() int64 { return r.total }
