package arrival

import (
	"math"
	"math/rand/v2"
	"time"
)

// stream separates the draws of arrivals from other uses of the same seed.
const stream = 0x61727269_76616c73

// order draws numbers that are uniform over [0, width), in ascending order, one after the other.
type order struct {
	drawn, total int64
	width        float64
	left         float64 // from the last number to the end of the width
	source       *rand.PCG
}

func newOrder(total int64, width float64, seed uint64) order {
	return order{total: total, width: width, left: width, source: rand.NewPCG(seed, stream)}
}

// next returns the next number. There must be one left. Rounding may put one on the width itself.
func (o *order) next() float64 {
	remaining := float64(o.total - o.drawn)
	o.left *= math.Exp(math.Log(o.uniform()) / remaining)
	o.drawn++
	return o.width - o.left // left never grows, so the numbers never go back
}

// uniform returns a number in (0, 1]: a zero would put every later number on the end of the width.
func (o *order) uniform() float64 {
	return float64(o.source.Uint64()>>11+1) / (1 << 53)
}

type poisson struct {
	order

	span time.Duration
}

// NewPoisson returns the arrivals of a Poisson process whose count is known: N = floor(rate x span), as exact as with
// constant arrivals. Given its count, the instants of a Poisson process are N independent uniform draws over the span,
// in order. The order statistics are drawn one after the other, in constant memory:
//
//	t(0)   = 0
//	t(i+1) = T - (T - t(i)) x U^(1 / (N - i))      i = 0, 1, ... N-1
//
//	T  span                      N - i  arrivals still to come
//	U  uniform over (0, 1]       t      seconds from the start
//
//	rate 4/s, span 2 s:
//
//	0s                  1s                  2s
//	|--:|---||-----|----:----|------|-|-|---:
//	    0   12     3         4      5 6 7
//
// U^(1/n) is the largest of n uniform draws, turned round: the share of what is left that lies after the earliest of n.
// Gaps are close to exponential with mean 1 / rate once N is more than some dozens; bunches and holes are as in the
// unconditioned process, only the total is held.
//
// The same rate, span and seed give the same instants, on one processor architecture: the last bit of an exponential
// may differ between two. Arguments that New refuses give an empty process.
func NewPoisson(rate float64, span time.Duration, seed uint64) Process {
	total, err := count(rate, span)
	if err != nil {
		return &poisson{}
	}
	return &poisson{newOrder(total, float64(span), seed), span}
}

// Next implements Process.
func (p *poisson) Next() (time.Duration, bool) {
	if p.drawn == p.total {
		return 0, false
	}
	// An instant too close to the end to show beside the span would be on it, which is outside.
	return min(time.Duration(p.next()), p.span-1), true
}

// Total implements Process.
func (p *poisson) Total() int64 { return p.total }

// shaped is a Poisson process whose rate follows a shape: uniform draws over the arrivals that the shape expects, turned
// into instants by the inverse of its integral.
type shaped struct {
	order

	shape Shape
	below float64 // the largest number that is less than all expected arrivals
	last  time.Duration
}

func newShaped(p part, seed uint64) *shaped {
	width, _ := p.expected().Float64()
	return &shaped{order: newOrder(floor(p.expected()), width, seed), shape: p, below: math.Nextafter(width, 0)}
}

// Next implements Process.
func (s *shaped) Next() (time.Duration, bool) {
	if s.drawn == s.total {
		return 0, false
	}
	due := min(max(s.shape.Invert(min(s.next(), s.below)), 0), s.shape.Span()-1)
	s.last = max(s.last, due) // inverses in floats may go back by a rounding
	return s.last, true
}

// Total implements Process.
func (s *shaped) Total() int64 { return s.total }
