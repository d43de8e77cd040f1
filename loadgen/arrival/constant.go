package arrival

import (
	"math/big"
	"time"
)

// constant holds the schedule as an exact ratio of integers.
type constant struct {
	next, total int64
	num, den    *big.Int // nanoseconds between arrivals = num / den
	k, due, rem big.Int  // scratch, so that Next does not allocate
}

// NewConstant returns arrivals at even distances:
//
//	due(k) = k / rate          k = 0, 1, ... N-1
//	N      = floor(rate x span)
//
//	rate 4/s, span 2 s:
//
//	0s                  1s                  2s
//	|----|----|----|----|----|----|----|----:
//	0    1    2    3    4    5    6    7
//
// rate is in arrivals per second, due in nanoseconds, rounded down. Each instant is computed from k in exact integer
// arithmetic and not from the one before, so nothing drifts over a long run. The span is half open: k = rate x t is due
// at t exactly and belongs to what begins at t, so a warm-up of w seconds holds rate x w arrivals and the part after it
// rate x (span - w), whenever these are whole.
//
// Arguments that New refuses give an empty process.
func NewConstant(rate float64, span time.Duration) Process {
	total, err := count(rate, span)
	if err != nil {
		return &constant{}
	}
	period := new(big.Rat).Quo(big.NewRat(int64(time.Second), 1), decimal(rate))
	return &constant{total: total, num: period.Num(), den: period.Denom()}
}

// Next implements Process.
func (c *constant) Next() (time.Duration, bool) {
	if c.next == c.total {
		return 0, false
	}
	c.k.SetInt64(c.next)
	c.due.Mul(&c.k, c.num)
	c.due.QuoRem(&c.due, c.den, &c.rem)
	c.next++
	return time.Duration(c.due.Int64()), true
}

// Total implements Process.
func (c *constant) Total() int64 { return c.total }
