package arrival

import (
	"fmt"
	"math"
	"math/big"
	"time"
)

type sine struct {
	mean, amplitude float64 // messages per second
	period, span    time.Duration
	perPeriod       float64 // arrivals
	count           float64
	total           *big.Rat
}

// NewSine returns a rate that swings about a mean; it begins at the mean, upwards.
//
//	r(t) = M + A sin(2 pi t / P)                        M  mean, messages per second
//	N(t) = M t + A P / (2 pi) x (1 - cos(2 pi t / P))   A  amplitude, messages per second, 0 to M
//	                                                    P  period, seconds
//	r
//	M+A |   .-''-.            .-''-.
//	M   |-.'------'.--------.'------'.-------
//	M-A |           '-.__.-'          '-.__.-
//	0   +------------------------------------- t
//	    0                P                 2 P
//
// The inverse has no closed form. Whole periods are divided off; in the one that is left, with x = 2 pi t / P,
//
//	x + a (1 - cos x) = y        a  A / M        y  2 pi n / (M P), n the arrivals since the period began
//
// is Kepler's equation turned by a quarter, solved by Newton's method between bounds. Errors wrap ErrBadShape (an amplitude
// above the mean, or no period), ErrNegativeRate, ErrBadSpan, ErrLongSpan or ErrTooMany.
func NewSine(mean, amplitude float64, period, span time.Duration) (Shape, error) {
	if err := checkRates(mean, amplitude); err != nil {
		return nil, fmt.Errorf("sine: %w", err)
	}
	if amplitude > mean {
		return nil, fmt.Errorf("%w: sine with an amplitude of %v/s above its mean of %v/s", ErrBadShape, amplitude, mean)
	}
	if period <= 0 {
		return nil, fmt.Errorf("%w: sine with a period of %s", ErrBadShape, period)
	}
	s := &sine{mean: mean, amplitude: amplitude, period: period, span: span}
	s.perPeriod, _ = new(big.Rat).Mul(decimal(mean), seconds(period)).Float64()
	s.total = new(big.Rat).Mul(decimal(mean), seconds(span))
	if _, err := checked(s); err != nil {
		return nil, fmt.Errorf("sine about %v/s for %s: %w", mean, span, err)
	}
	s.total.Add(s.total, new(big.Rat).SetFloat64(s.swing(span))) // 0 after whole periods, so the count is exact there
	s.count, _ = s.total.Float64()
	return s, nil
}

// swing returns the arrivals that the sine has added by t to those of the mean.
func (s *sine) swing(t time.Duration) float64 {
	half := math.Sin(math.Pi * float64(t%s.period) / float64(s.period))
	return s.amplitude * s.period.Seconds() / math.Pi * half * half // 1 - cos x = 2 sin^2(x/2), without the cancellation
}

// Rate implements Shape.
func (s *sine) Rate(t time.Duration) float64 {
	t = min(max(t, 0), s.span)
	return s.mean + s.amplitude*math.Sin(2*math.Pi*float64(t%s.period)/float64(s.period))
}

// Integral implements Shape.
func (s *sine) Integral(t time.Duration) float64 {
	if t >= s.span {
		return s.count
	}
	t = max(t, 0)
	return s.mean*t.Seconds() + s.swing(t)
}

// Invert implements Shape.
func (s *sine) Invert(n float64) time.Duration {
	n = max(n, 0)
	if n >= s.count {
		return s.span
	}
	whole := math.Floor(n / s.perPeriod)
	rest := math.FMA(-whole, s.perPeriod, n) // a little outside [0, perPeriod) when the quotient was rounded
	turn := angle(2*math.Pi*max(0, rest)/s.perPeriod, s.amplitude/s.mean) / (2 * math.Pi)
	t := time.Duration(whole) * s.period
	return min(t+nanoseconds(turn*float64(s.period), float64(t+s.period)), s.span)
}

// maxSteps bounds the search for an angle. Newton's method needs three to five steps; close to where the rate touches 0 it
// slows down to a third per step, and halving takes over.
const maxSteps = 64

// angle returns x with x + a (1 - cos x) = y, for a in [0, 1]. The left side never falls, and exceeds x by 0 to 2 a.
func angle(y, a float64) float64 {
	low, high := y-2*a, y
	x := y - a*(1-math.Cos(y-a))
	for range maxSteps {
		sin, cos := math.Sincos(x)
		excess := x + a*(1-cos) - y
		if excess > 0 {
			high = x
		} else {
			low = x
		}
		next := x - excess/(1+a*sin)
		if !(next >= low && next <= high) { // also when the slope is 0
			next = low + (high-low)/2
		}
		if math.Abs(next-x) <= 4e-15 { // a few roundings of 2 pi: a stricter bound may never be met
			return next
		}
		x = next
	}
	return x
}

// Span implements Shape.
func (s *sine) Span() time.Duration { return s.span }

func (s *sine) expected() *big.Rat { return s.total }

func (s *sine) schedule(before *big.Rat) func(int64) time.Duration { return byInverse(s, before) }
