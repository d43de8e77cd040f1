package arrival

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"
)

// MaxSpan bounds the span of a shape, about 104 days: up to there a float64 tells every nanosecond from the next.
const MaxSpan time.Duration = 1 << 53

// Errors of the constructors of shapes and of FromShape, beside ErrUnknownKind, ErrBadSpan and ErrTooMany.
var (
	// ErrNegativeRate is returned for a rate within a shape that is not a number of 0 or more. 0 is a pause.
	ErrNegativeRate = errors.New("the rate is not a finite number of 0 or more")
	// ErrLongSpan is returned for a span above MaxSpan.
	ErrLongSpan = errors.New("the span is above 104 days")
	// ErrBadShape is returned for a shape whose parts do not fit together; the text says which.
	ErrBadShape = errors.New("impossible shape")
	// ErrNothingOffered is returned when the rate of a shape is 0 all the time.
	ErrNothingOffered = errors.New("the shape offers nothing")
	// ErrReplayIsNotRandom is returned when Poisson arrivals are asked of a shape with a replay in it: the instants of a
	// file are taken as they are.
	ErrReplayIsNotRandom = errors.New("a replay has instants of its own and cannot be a Poisson process")
)

// Shape is an offered rate over time, as a pure function with its integral. All shapes of this package are immutable and
// safe for concurrent use. Arguments outside a shape's range are taken as the nearer end of it.
//
// The integral counts arrivals in half-open stretches, [0, t): what is due at t belongs to what begins at t. Its inverse
// is therefore the instant at which the integral *leaves* n, which matters where the rate is 0 for a while: after ten
// arrivals and a pause, arrival 10 (the eleventh) is due when the pause is over and not when it begins.
//
//	N(t) = integral of r over [0, t)        r  rate, messages per second        t  offset from the start, seconds
//	due(n) = sup { t : N(t) <= n }          N  expected arrivals                n  arrivals, need not be whole
type Shape interface {
	// Rate returns the offered rate at t, in messages per second. At and after Span it is the rate of the end.
	Rate(t time.Duration) float64
	// Integral returns the expected arrivals in [0, t).
	Integral(t time.Duration) float64
	// Invert returns the latest t with Integral(t) <= n, rounded down to a nanosecond, and Span for an n that is not
	// reached.
	Invert(n float64) time.Duration
	// Span returns how long the shape lasts.
	Span() time.Duration
}

// part is a Shape that knows its integral beyond the precision of floats, so that counts come out as on paper.
type part interface {
	Shape
	// expected returns Integral(Span()), with rates taken as the decimals that a person wrote.
	expected() *big.Rat
	// schedule returns a function that says when arrival k is due, for a part before which this many arrivals are
	// expected. It is asked for k with before <= k < before + expected only, so never of a pause. The function is not safe
	// for concurrent use.
	schedule(before *big.Rat) func(k int64) time.Duration
}

// FromShape returns a process with the rate of shape.
//
//	Constant   due(k) = shape.Invert(k)                       k = 0, 1, ... N-1
//	Poisson    due(k) = shape.Invert(x(k))                    x(0) <= x(1) <= ... uniform draws over [0, L)
//	           N      = floor(L),  L = shape.Integral(Span)
//
// Constant arrivals of a flat shape are those of NewConstant, and Poisson arrivals those of NewPoisson. A Poisson process
// whose rate changes is one of rate 1 on a stretched axis; the inverse of the integral stretches it. Given its count, its
// instants there are independent and uniform (see NewPoisson). seed matters to Poisson only.
//
// A replay, alone or in a sequence, is taken as it is: kind must be Constant. Errors wrap ErrUnknownKind,
// ErrNothingOffered, ErrReplayIsNotRandom, ErrTooMany, and what the constructors of shapes return.
func FromShape(shape Shape, kind string, seed uint64) (Process, error) {
	p, err := adopt(shape)
	if err != nil {
		return nil, fmt.Errorf("%s arrivals: %w", kind, err)
	}
	if p.expected().Sign() == 0 {
		return nil, fmt.Errorf("%s arrivals for %s: %w", kind, p.Span(), ErrNothingOffered)
	}
	if f, ok := p.(*flat); ok {
		return New(kind, f.rate, f.span, seed)
	}
	switch {
	case kind == Constant:
		return newRegular(p), nil
	case kind == Poisson && replays(p):
		return nil, ErrReplayIsNotRandom
	case kind == Poisson:
		return newShaped(p, seed), nil
	default:
		return nil, fmt.Errorf("%w: %q", ErrUnknownKind, kind)
	}
}

// adopt returns shape as a part, within the bounds on span and count.
func adopt(shape Shape) (part, error) {
	p, ok := shape.(part)
	if !ok {
		total := new(big.Rat).SetFloat64(shape.Integral(shape.Span()))
		if total == nil || total.Sign() < 0 {
			return nil, fmt.Errorf("%w: its integral is no finite number of 0 or more", ErrBadShape)
		}
		p = foreign{shape, total}
	}
	return checked(p)
}

// checked returns p when its span and its count are within bounds.
func checked(p part) (part, error) {
	if err := checkSpan(p.Span()); err != nil {
		return nil, err
	}
	if p.expected().Cmp(big.NewRat(MaxTotal, 1)) > 0 {
		return nil, ErrTooMany
	}
	return p, nil
}

func checkSpan(span time.Duration) error {
	if span <= 0 {
		return ErrBadSpan
	}
	if span > MaxSpan {
		return ErrLongSpan
	}
	return nil
}

func checkRates(rates ...float64) error {
	for _, rate := range rates {
		if !(rate >= 0) || math.IsInf(rate, 0) {
			return fmt.Errorf("%w: %v", ErrNegativeRate, rate)
		}
	}
	return nil
}

// replays says whether the instants of p, or of a part of it, were read and not computed.
func replays(p part) bool {
	if s, ok := p.(*sequence); ok {
		for _, each := range s.parts {
			if replays(each.part) {
				return true
			}
		}
	}
	_, ok := p.(*replay)
	return ok
}

// foreign is a shape from outside this package, as exact as its own floats.
type foreign struct {
	Shape

	total *big.Rat
}

func (f foreign) expected() *big.Rat { return f.total }

func (f foreign) schedule(before *big.Rat) func(int64) time.Duration { return byInverse(f, before) }

// byInverse is the schedule of a shape whose inverse is computed in floats. Whole arrivals are subtracted as integers, so
// that a part far into a long run is as precise as the first.
func byInverse(s Shape, before *big.Rat) func(int64) time.Duration {
	whole := floor(before)
	fraction, _ := new(big.Rat).Sub(before, new(big.Rat).SetInt64(whole)).Float64()
	return func(k int64) time.Duration { return s.Invert(float64(k-whole) - fraction) }
}

// seconds returns d as an exact number of seconds.
func seconds(d time.Duration) *big.Rat { return big.NewRat(int64(d), int64(time.Second)) }

// floor returns the whole part of a number that is not negative and below 2^63.
func floor(r *big.Rat) int64 { return new(big.Int).Quo(r.Num(), r.Denom()).Int64() }

// ceil returns the least whole number that is not below r, for the numbers that floor takes.
func ceil(r *big.Rat) int64 {
	if n := floor(r); r.IsInt() {
		return n
	}
	return floor(r) + 1
}

// nanoseconds rounds t, in nanoseconds, down. An instant that is whole on paper may have come out a few roundings below
// that, relative to scale, the largest number on the way to it; it is lifted first. Without that, an arrival due at the
// end of a warm-up would at times fall into it.
func nanoseconds(t, scale float64) time.Duration {
	return time.Duration(math.Floor(t + scale*0x1p-50))
}
