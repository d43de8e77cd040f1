package arrival

import (
	"math"
	"math/rand/v2"
	"time"
)

// stream separates the draws of arrivals from other uses of the same seed.
const stream = 0x61727269_76616c73

type poisson struct {
	drawn, total int64
	span         time.Duration
	left         float64 // nanoseconds from the last instant to the end of the span
	source       *rand.PCG
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
	return &poisson{total: total, span: span, left: float64(span), source: rand.NewPCG(seed, stream)}
}

// Next implements Process.
func (p *poisson) Next() (time.Duration, bool) {
	if p.drawn == p.total {
		return 0, false
	}
	remaining := float64(p.total - p.drawn)
	p.left *= math.Exp(math.Log(p.uniform()) / remaining)
	p.drawn++
	// left never grows, so the instants never go back. One too small to show beside the span would put its arrival on
	// the end of the span, which is outside.
	return min(time.Duration(float64(p.span)-p.left), p.span-1), true
}

// uniform returns a number in (0, 1]: a zero would put every later arrival on the end of the span.
func (p *poisson) uniform() float64 {
	return float64(p.source.Uint64()>>11+1) / (1 << 53)
}

// Total implements Process.
func (p *poisson) Total() int64 { return p.total }
