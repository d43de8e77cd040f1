package arrival

import (
	"fmt"
	"math/big"
	"time"
)

type flat struct {
	rate  float64
	span  time.Duration
	total *big.Rat
}

// NewFlat returns one rate all the time.
//
//	r(t) = R                     R  rate, messages per second, 0 or more
//	N(t) = R x t                 t  seconds, 0 to span
//	due(n) = n / R
//
//	r
//	R |---------------------
//	  |
//	0 +--------------------- t
//	  0                   span
//
// A rate of 0 is a pause, of use in a sequence. Errors wrap ErrNegativeRate, ErrBadSpan, ErrLongSpan or ErrTooMany.
func NewFlat(rate float64, span time.Duration) (Shape, error) {
	if err := checkRates(rate); err != nil {
		return nil, fmt.Errorf("flat shape: %w", err)
	}
	f := &flat{rate: rate, span: span}
	f.total = new(big.Rat).Mul(decimal(rate), seconds(span))
	if _, err := checked(f); err != nil {
		return nil, fmt.Errorf("flat shape at %v/s for %s: %w", rate, span, err)
	}
	return f, nil
}

// Rate implements Shape.
func (f *flat) Rate(time.Duration) float64 { return f.rate }

// Integral implements Shape.
func (f *flat) Integral(t time.Duration) float64 {
	return f.rate * min(max(t, 0), f.span).Seconds()
}

// Invert implements Shape.
func (f *flat) Invert(n float64) time.Duration {
	n = max(n, 0)
	if n >= f.Integral(f.span) {
		return f.span
	}
	t := n * float64(time.Second) / f.rate
	return min(nanoseconds(t, t), f.span)
}

// Span implements Shape.
func (f *flat) Span() time.Duration { return f.span }

func (f *flat) expected() *big.Rat { return f.total }

// schedule computes in integers, as NewConstant does:
//
//	due(k) = (k - p/q) x num / den = (k x q x num - p x num) / (q x den)        nanoseconds
//
//	p / q  arrivals expected before        num / den  nanoseconds between arrivals
func (f *flat) schedule(before *big.Rat) func(int64) time.Duration {
	period := new(big.Rat).Quo(big.NewRat(int64(time.Second), 1), decimal(f.rate))
	slope := new(big.Int).Mul(before.Denom(), period.Num())
	offset := new(big.Int).Mul(before.Num(), period.Num())
	divisor := new(big.Int).Mul(before.Denom(), period.Denom())
	lowest(slope, offset, divisor)
	var arrival, due, remainder big.Int // scratch, so that a call does not allocate
	return func(k int64) time.Duration {
		arrival.SetInt64(k)
		due.Mul(&arrival, slope)
		due.Sub(&due, offset)
		due.QuoRem(&due, divisor, &remainder)
		return time.Duration(due.Int64())
	}
}

// lowest divides all numbers by what they have in common, in place: short integers divide faster.
func lowest(numbers ...*big.Int) {
	common := new(big.Int)
	for _, n := range numbers {
		common.GCD(nil, nil, common, n)
	}
	for _, n := range numbers {
		n.Quo(n, common)
	}
}
