package arrival

import (
	"fmt"
	"math/big"
	"sort"
	"time"
)

// MaxParts bounds the parts of a sequence: a profile is written by hand, and what is longer is a replay.
const MaxParts = 1000

// placed is a part with what lies before it.
type placed struct {
	part

	start  time.Duration
	before *big.Rat // arrivals expected before the part
	count  float64  // the same, as a float
}

type sequence struct {
	parts []placed
	span  time.Duration
	count float64
	total *big.Rat
}

// NewSequence returns shapes one after the other.
//
//	r(t) = r_i(t - s_i)                    s_i  sum of the spans before shape i, seconds
//	N(t) = c_i + N_i(t - s_i)              c_i  sum of the integrals before it, arrivals
//	                                       i    the last shape with s_i <= t
//	r
//	  |            ____
//	  |       _--''    |    .''.    .''.
//	  |___--''         |___'    '..'    '.
//	0 +----------------+----------------- t
//	  0       s_1     s_2
//
// The count is continuous: fractions of an arrival are carried into the next shape and not rounded at each border, so the
// arrivals of a sequence are the integral of the whole, rounded down once. The instants of a replay stay as they are; a
// fraction carried through one is given to what follows, or leaves the last instant out when nothing follows.
//
// A sequence in a sequence is taken apart. Errors wrap ErrBadShape (no shape, or more than MaxParts), ErrLongSpan or
// ErrTooMany.
func NewSequence(shapes ...Shape) (Shape, error) {
	if len(shapes) == 0 {
		return nil, fmt.Errorf("%w: a sequence of nothing", ErrBadShape)
	}
	s := &sequence{total: new(big.Rat)}
	for i, shape := range shapes {
		p, err := adopt(shape)
		if err != nil {
			return nil, fmt.Errorf("shape %d of a sequence: %w", i+1, err)
		}
		if err := s.add(p); err != nil {
			return nil, fmt.Errorf("sequence up to shape %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *sequence) add(p part) error {
	if inner, ok := p.(*sequence); ok {
		for _, each := range inner.parts {
			if err := s.add(each.part); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.parts) == MaxParts {
		return fmt.Errorf("%w: more than %d parts", ErrBadShape, MaxParts)
	}
	s.parts = append(s.parts, place(p, s.span, s.total))
	s.span += p.Span() // two spans of at most MaxSpan: no overflow
	s.total = new(big.Rat).Add(s.total, p.expected())
	s.count, _ = s.total.Float64()
	_, err := checked(s)
	return err
}

func place(p part, start time.Duration, before *big.Rat) placed {
	count, _ := before.Float64()
	return placed{part: p, start: start, before: before, count: count}
}

// at returns the part that t lies in.
func (s *sequence) at(t time.Duration) *placed {
	after := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].start > t })
	return &s.parts[max(0, after-1)]
}

// Rate implements Shape.
func (s *sequence) Rate(t time.Duration) float64 {
	p := s.at(t)
	return p.Rate(t - p.start)
}

// Integral implements Shape.
func (s *sequence) Integral(t time.Duration) float64 {
	p := s.at(t)
	return p.count + p.Integral(t-p.start)
}

// Invert implements Shape. The last part that begins with n or less arrivals is the one that n is left in: pauses before
// it begin with as many.
func (s *sequence) Invert(n float64) time.Duration {
	if n >= s.count {
		return s.span
	}
	after := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].count > n })
	p := &s.parts[max(0, after-1)]
	return p.start + p.Invert(n-p.count)
}

// Span implements Shape.
func (s *sequence) Span() time.Duration { return s.span }

func (s *sequence) expected() *big.Rat { return s.total }

func (s *sequence) schedule(before *big.Rat) func(int64) time.Duration { return byInverse(s, before) }
