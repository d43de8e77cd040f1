// Package arrival says when messages are due: the open-loop schedule of a run, from its first instant to its last.
//
// A Process yields due instants, offsets from its own start, one after the other. It knows no clock and waits for
// nothing: the load side walks it and compares with now, the simulator walks it in virtual time, and both see the same
// instants. Whatever the kind of arrivals, the number of messages is the integral of the rate over the span, rounded
// down, so that an account can be checked against a plain product.
//
// A Shape is a rate that changes, with its integral: flat, ramp, steps, spike, sine, a replay of recorded instants, and
// sequences of these. FromShape makes a Process of one; New is the short way for a single rate.
//
// The package is a leaf and opens no files. A Process is not safe for concurrent use, a Shape is.
package arrival

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
)

// Kinds of arrivals, as profiles name them.
const (
	Constant = "constant"
	Poisson  = "poisson"
)

// MaxTotal bounds the arrivals of one process: a message's sequence has 40 bits in its id.
const MaxTotal = 1 << 40

// Errors of New.
var (
	// ErrUnknownKind is returned for a kind that is neither Constant nor Poisson.
	ErrUnknownKind = errors.New("unknown kind of arrivals")
	// ErrBadRate is returned for a rate that is not a number above zero.
	ErrBadRate = errors.New("the rate is not a finite number above 0")
	// ErrBadSpan is returned for a span of zero or less.
	ErrBadSpan = errors.New("the span is not above 0")
	// ErrTooMany is returned when rate times span is above MaxTotal.
	ErrTooMany = errors.New("too many arrivals")
)

// Process yields due instants one after the other, non-decreasing, all in [0, span). Not safe for concurrent use.
type Process interface {
	// Next returns the next due instant as an offset from the start of the process, and false when there is none left.
	Next() (due time.Duration, ok bool)
	// Total returns how many instants the process yields in all: the integral of the rate over the span, rounded down. It
	// does not change.
	Total() int64
}

// New returns a process of the given kind. rate is in arrivals per second, over all of span. seed matters to Poisson
// only. Its errors wrap ErrUnknownKind, ErrBadRate, ErrBadSpan or ErrTooMany.
func New(kind string, rate float64, span time.Duration, seed uint64) (Process, error) {
	if _, err := count(rate, span); err != nil {
		return nil, fmt.Errorf("%s arrivals at %v/s for %s: %w", kind, rate, span, err)
	}
	switch kind {
	case Constant:
		return NewConstant(rate, span), nil
	case Poisson:
		return NewPoisson(rate, span, seed), nil
	default:
		return nil, fmt.Errorf("%w: %q", ErrUnknownKind, kind)
	}
}

// count returns floor(rate x span), exactly.
func count(rate float64, span time.Duration) (int64, error) {
	if !(rate > 0) || math.IsInf(rate, 0) {
		return 0, ErrBadRate
	}
	if span <= 0 {
		return 0, ErrBadSpan
	}
	product := new(big.Rat).Mul(decimal(rate), big.NewRat(int64(span), int64(time.Second)))
	total := new(big.Int).Quo(product.Num(), product.Denom())
	if !total.IsInt64() || total.Int64() > MaxTotal {
		return 0, ErrTooMany
	}
	return total.Int64(), nil
}

// decimal returns the number that a person wrote to get this float: the shortest decimal that reads back as it. The
// float itself will not do. 0.3 is stored a little below three tenths, so ten seconds of it would hold two arrivals.
func decimal(rate float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(rate, 'g', -1, 64))
	return r
}
