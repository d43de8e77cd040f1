// Package service simulates the work of a handler: how long it takes and whether it fails by itself.
//
// Both are drawn from the message's sequence, the attempt and the run's seed, by hash and not from a stream: the order
// in which workers take messages changes nothing, and a run can be repeated. The package waits for nothing and knows no
// clock; workers and simulator make the same draws. It is a leaf. All values are immutable and safe for concurrent use.
package service

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Distributions of service times, as profiles name them.
const (
	Fixed       = "fixed"
	Uniform     = "uniform"
	Exponential = "exponential"
	Lognormal   = "lognormal"
)

// Errors of NewTime.
var (
	// ErrUnknownDistribution is returned for a name that is none of the four.
	ErrUnknownDistribution = errors.New("unknown distribution of service times")
	// ErrBadTime is returned for a negative time, a minimum above the maximum, or a sigma that is negative or no number.
	ErrBadTime = errors.New("impossible service time")
)

// Time draws service times. The zero value draws 0.
//
// With u uniform over (0, 1) and z standard normal, both of one draw:
//
//	fixed        mean
//	uniform      min + u x (max - min)
//	exponential  -mean x ln(u)
//	lognormal    exp(m + sigma x z)   m = ln(mean) - sigma^2 / 2
//
// so that mean is the mean of the distribution in each case; the median of lognormal is below it, by exp(-sigma^2 / 2).
type Time struct {
	distribution    string
	mean, low, high float64 // nanoseconds
	sigma           float64 // standard deviation of the logarithm, no unit
	seed            uint64
}

// NewTime returns a distribution. mean serves fixed, exponential and lognormal; low and high serve uniform; sigma
// serves lognormal; what does not serve is not looked at. Its errors wrap ErrUnknownDistribution or ErrBadTime.
func NewTime(distribution string, mean, low, high time.Duration, sigma float64, seed uint64) (Time, error) {
	t := Time{
		distribution: distribution, mean: float64(mean), low: float64(low), high: float64(high), sigma: sigma, seed: seed,
	}
	if err := t.check(); err != nil {
		return Time{}, fmt.Errorf("service time: %w", err)
	}
	return t, nil
}

func (t Time) check() error {
	switch t.distribution {
	case Fixed, Exponential:
		return require(t.mean >= 0, "the mean is negative")
	case Uniform:
		return require(t.low >= 0 && t.low <= t.high, "min is negative or above max")
	case Lognormal:
		if !(t.sigma >= 0) || math.IsInf(t.sigma, 0) {
			return fmt.Errorf("%w: sigma is negative or no number", ErrBadTime)
		}
		return require(t.mean >= 0, "the mean is negative")
	default:
		return fmt.Errorf("%w: %q", ErrUnknownDistribution, t.distribution)
	}
}

func require(holds bool, otherwise string) error {
	if holds {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrBadTime, otherwise)
}

// Draw returns the service time of one attempt at one message, never negative and at most MaxTime. The same seed,
// sequence and attempt always give the same time.
func (t Time) Draw(seq int64, attempt int) time.Duration {
	return time.Duration(min(t.nanoseconds(uniform(t.seed, saltTime, seq, attempt)), float64(MaxTime)))
}

// IsZero reports whether every draw is 0.
func (t Time) IsZero() bool {
	if t.distribution == Uniform {
		return t.high == 0
	}
	return t.mean == 0
}

// MaxTime bounds a drawn service time. Exponential and lognormal have no end, and a handler has a time-out far below.
const MaxTime = 24 * time.Hour

func (t Time) nanoseconds(u float64) float64 {
	switch t.distribution {
	case Uniform:
		return t.low + u*(t.high-t.low)
	case Exponential:
		return -t.mean * math.Log(u)
	case Lognormal:
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		return t.mean * math.Exp(t.sigma*z-t.sigma*t.sigma/2)
	default: // Fixed, and the zero Time, whose mean is 0
		return t.mean
	}
}
