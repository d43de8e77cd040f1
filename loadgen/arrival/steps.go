package arrival

import (
	"fmt"
	"slices"
	"time"
)

// NewSteps returns a staircase: the rates one after the other, each for the same time.
//
//	r(t) = R_i      i T / n <= t < (i + 1) T / n        R_i  rates, messages per second, 0 or more, i = 0 .. n-1
//	                                                    T    span, seconds
//	r
//	R_2 |              ______
//	R_1 |       ______|
//	R_0 |______|
//	0   +--------------------- t
//	    0     T/3    2T/3    T
//
// Borders are rounded down to a nanosecond. The result is a sequence of flat shapes. Errors wrap ErrBadShape (no rates, more
// than MaxParts), ErrNegativeRate, ErrBadSpan (a step below a nanosecond, too), ErrLongSpan or ErrTooMany.
func NewSteps(rates []float64, span time.Duration) (Shape, error) {
	if err := checkSpan(span); err != nil {
		return nil, fmt.Errorf("steps for %s: %w", span, err)
	}
	if len(rates) > MaxParts {
		return nil, fmt.Errorf("%w: more than %d steps", ErrBadShape, MaxParts) // and i x span below stays an int64
	}
	stretches := make([]stretch, len(rates))
	border := func(i int) time.Duration { return time.Duration(int64(span) * int64(i) / int64(len(rates))) }
	for i, rate := range rates {
		stretches[i] = stretch{rate, border(i+1) - border(i)}
	}
	return flats("steps", stretches)
}

// NewSpike returns one rate with another for a while in between, higher or lower.
//
//	r(t) = P   a <= t < a + w             B, P  base and peak, messages per second, 0 or more
//	       B   at all other times         a, w  where the peak begins and how long it lasts, seconds
//
//	r
//	P |        ____
//	  |       |    |
//	B |_______|    |________
//	0 +--------------------- t
//	  0       a   a+w   span
//
// The result is a sequence of flat shapes. Errors wrap ErrBadShape (a peak that is not within the span), ErrNegativeRate,
// ErrBadSpan, ErrLongSpan or ErrTooMany.
func NewSpike(base, peak float64, at, width, span time.Duration) (Shape, error) {
	if err := checkSpan(span); err != nil {
		return nil, fmt.Errorf("spike within %s: %w", span, err)
	}
	if at < 0 || width <= 0 || at > span || width > span-at {
		return nil, fmt.Errorf("%w: a spike of %s at %s is not within %s", ErrBadShape, width, at, span)
	}
	stretches := []stretch{{base, at}, {peak, width}, {base, span - at - width}}
	atAnEnd := func(s stretch) bool { return s.span == 0 }
	return flats("spike", slices.DeleteFunc(stretches, atAnEnd))
}

// stretch is a rate in messages per second and how long it lasts.
type stretch struct {
	rate float64
	span time.Duration
}

// flats returns flat shapes in sequence.
func flats(name string, stretches []stretch) (Shape, error) {
	var shapes []Shape
	for _, s := range stretches {
		shape, err := NewFlat(s.rate, s.span)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		shapes = append(shapes, shape)
	}
	return NewSequence(shapes...)
}
