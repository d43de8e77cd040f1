package arrival

import (
	"fmt"
	"math"
	"math/big"
	"time"
)

type ramp struct {
	from, to float64 // messages per second
	slope    float64 // messages per second, per second
	span     time.Duration
	count    float64
	total    *big.Rat
}

// NewRamp returns a rate that goes from one value to another in a straight line, up or down.
//
//	r(t) = A + g t                             A, B  first and last rate, messages per second, 0 or more
//	N(t) = A t + g t^2 / 2                     g     slope (B - A) / T, messages per second squared
//	due(n) = 2 n / (A + sqrt(A^2 + 2 g n))     T     span, seconds
//
//	r
//	B |                  __--
//	  |          ___---''
//	A |__---''''
//	0 +--------------------- t
//	  0                    T
//
// The inverse is the root of the quadratic in the form that does not subtract nearly equal numbers. Errors wrap
// ErrNegativeRate, ErrBadSpan, ErrLongSpan or ErrTooMany.
func NewRamp(from, to float64, span time.Duration) (Shape, error) {
	if err := checkRates(from, to); err != nil {
		return nil, fmt.Errorf("ramp: %w", err)
	}
	r := &ramp{from: from, to: to, span: span}
	r.total = new(big.Rat).Add(decimal(from), decimal(to))
	r.total.Mul(r.total, seconds(span))
	r.total.Quo(r.total, big.NewRat(2, 1))
	if _, err := checked(r); err != nil {
		return nil, fmt.Errorf("ramp from %v/s to %v/s for %s: %w", from, to, span, err)
	}
	r.slope = (to - from) / span.Seconds()
	r.count, _ = r.total.Float64()
	return r, nil
}

// Rate implements Shape.
func (r *ramp) Rate(t time.Duration) float64 {
	if t >= r.span {
		return r.to // exactly, whatever the slope was rounded to
	}
	return max(0, r.from+r.slope*max(t, 0).Seconds())
}

// Integral implements Shape.
func (r *ramp) Integral(t time.Duration) float64 {
	if t >= r.span {
		return r.count
	}
	s := max(t, 0).Seconds()
	return (r.from + r.slope*s/2) * s
}

// Invert implements Shape.
func (r *ramp) Invert(n float64) time.Duration {
	n = max(n, 0)
	if n >= r.count {
		return r.span
	}
	if n == 0 {
		return 0
	}
	root := math.Sqrt(max(0, r.from*r.from+2*r.slope*n))
	t := 2 * n / (r.from + root) * float64(time.Second)
	return min(nanoseconds(t, t), r.span)
}

// Span implements Shape.
func (r *ramp) Span() time.Duration { return r.span }

func (r *ramp) expected() *big.Rat { return r.total }

func (r *ramp) schedule(before *big.Rat) func(int64) time.Duration { return byInverse(r, before) }
