// Package draw says how large the body of a message is and which SKU it is about. A draw is a pure function of the run's
// seed and the message's sequence: there is no state, so messages can be made in any order, by any goroutine, again after
// a crash, and in part by another instance, and each comes out the same. (Lognormal sizes and Zipf's law go through
// exponentials, whose last bit may differ between processor architectures; one draw in many millions then differs, too.)
//
// Sizes and keys draw from streams of their own. A large body says nothing about its SKU.
//
// The package is a leaf. All its values are immutable and safe for concurrent use, and drawing does not allocate.
package draw

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Errors of the constructors; the text says which argument and why.
var (
	// ErrBadSize is returned for impossible sizes, weights or parameters of their distribution.
	ErrBadSize = errors.New("impossible body size")
	// ErrBadKeys is returned for an impossible number of keys, exponent or share.
	ErrBadKeys = errors.New("impossible keys")
)

// Streams keep the draws of one seed apart. The values mean nothing, they only differ.
const (
	sizeStream uint64 = 0x73697a65
	hotStream  uint64 = 0x686f74
	keyStream  uint64 = 0x6b657973
)

// gamma is 2^64 divided by the golden ratio, made odd: multiples of it are spread evenly over the 64-bit numbers.
const gamma uint64 = 0x9e3779b97f4a7c15

// bitsOf returns 64 random bits for the i-th draw of a message: element seq of a SplitMix64 generator (Steele, Lea, Flood
// 2014, "Fast splittable pseudorandom number generators"), whose state is a counter and so can be entered anywhere. Seed,
// stream and i are mixed into where that counter starts.
func bitsOf(seed, stream uint64, seq int64, i uint64) uint64 {
	start := mix(mix(seed+stream*gamma) + i*gamma)
	return mix(start + uint64(seq)*gamma)
}

// mix is a bijection under which every bit of the argument changes each bit of the result with about even odds (variant 13
// of Stafford's finalisers of MurmurHash3).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit returns a number in (0, 1), never an end of it, since logarithms and quantiles are taken of it.
func unit(random uint64) float64 {
	return (float64(random>>12) + 0.5) / (1 << 52)
}

// below returns a number in [0, n) for n above 0. Its odds differ from even ones by less than n / 2^64.
func below(random uint64, n int) int {
	high, _ := bits.Mul64(random, uint64(n))
	return int(high)
}

// above returns an error that names what is not a finite number above least.
func above(least float64, name string, value float64) error {
	if !(value > least) || math.IsInf(value, 0) {
		return fmt.Errorf("%s is %v, not a finite number above %v", name, value, least)
	}
	return nil
}
