package draw

import (
	"fmt"
	"math"
	"sort"
)

const (
	// MaxBytes bounds a body: 16 MiB, the most that RabbitMQ takes unless told otherwise (release notes of 4.0).
	MaxBytes = 16 << 20
	// MaxWeights bounds a list of sizes: it is written by hand.
	MaxWeights = 1000
)

// Size is a distribution of body sizes. The zero value draws 0 bytes.
type Size struct {
	kind     sizeKind
	min, max int     // bytes
	location float64 // lognormal: logarithm of the median
	sigma    float64 // lognormal
	sizes    []int   // weighted: bytes
	upTo     []float64
}

type sizeKind int

const (
	uniformSize sizeKind = iota // a fixed size is uniform over one
	lognormalSize
	weightedSize
)

// Weight is a body size in a list, and how often it is drawn in proportion to the others.
type Weight struct {
	Bytes  int
	Weight float64 // above 0; weights need not add up to 1
}

// FixedSize returns one size for all messages, in bytes, 0 to MaxBytes. Errors wrap ErrBadSize.
func FixedSize(bytes int) (Size, error) { return UniformSize(bytes, bytes) }

// Fixed is FixedSize for a size that is known to be good; one outside the bounds is moved to the nearer one.
func Fixed(bytes int) Size {
	bytes = min(max(bytes, 1), MaxBytes)
	return Size{min: bytes, max: bytes}
}

// UniformSize returns sizes from least to most, in bytes, both drawn and all equally often.
//
//	P(b) = 1 / (most - least + 1)
//
// Errors wrap ErrBadSize.
func UniformSize(least, most int) (Size, error) {
	if err := checkBytes(least, most); err != nil {
		return Size{}, err
	}
	return Size{kind: uniformSize, min: least, max: most}, nil
}

// LognormalSize returns sizes whose logarithm is normal, as those of documents and API bodies are: most are small, a few are
// very large.
//
//	b = median x e^(sigma z)      z  standard normal      median  bytes, half of all bodies are below it
//	mean = median x e^(sigma^2 / 2)                       sigma   spread of the logarithm, above 0
//
//	       .-.
//	      |   '.
//	     |      '-._
//	    |           ''--..______
//	 0 ---+----+----+----+----+---- bytes
//	       median
//
// With sigma 1, one body in a hundred is above 10 times the median and one in a thousand above 22 times. Sizes are rounded
// to a byte. What is beyond least or most, in bytes, becomes that bound, as a producer's own limit would have it: the
// median stays where it was put, and the mean moves. The median must lie within the bounds. Errors wrap ErrBadSize.
func LognormalSize(median, sigma float64, least, most int) (Size, error) {
	if err := checkBytes(least, most); err != nil {
		return Size{}, err
	}
	if !(median >= float64(least) && median <= float64(most) && median > 0) {
		return Size{}, fmt.Errorf("%w: a median of %v is not within %d to %d", ErrBadSize, median, least, most)
	}
	if err := above(0, "sigma", sigma); err != nil {
		return Size{}, fmt.Errorf("%w: %w", ErrBadSize, err)
	}
	return Size{kind: lognormalSize, min: least, max: most, location: math.Log(median), sigma: sigma}, nil
}

// WeightedSize returns sizes from a list.
//
//	P(b_i) = w_i / sum of w
//
// The list is copied. Errors wrap ErrBadSize: an empty list, more than MaxWeights, a size or weight out of range.
func WeightedSize(list []Weight) (Size, error) {
	if len(list) == 0 || len(list) > MaxWeights {
		return Size{}, fmt.Errorf("%w: a list of %d sizes, not 1 to %d", ErrBadSize, len(list), MaxWeights)
	}
	s := Size{kind: weightedSize, min: list[0].Bytes, max: list[0].Bytes}
	total := 0.0
	for _, each := range list {
		if err := checkBytes(each.Bytes, each.Bytes); err != nil {
			return Size{}, err
		}
		if err := above(0, "a weight", each.Weight); err != nil {
			return Size{}, fmt.Errorf("%w: %w", ErrBadSize, err)
		}
		total += each.Weight
		s.sizes, s.upTo = append(s.sizes, each.Bytes), append(s.upTo, total)
		s.min, s.max = min(s.min, each.Bytes), max(s.max, each.Bytes)
	}
	if math.IsInf(total, 0) {
		return Size{}, fmt.Errorf("%w: the sum of the weights is no finite number", ErrBadSize)
	}
	return s, nil
}

func checkBytes(least, most int) error {
	if least < 0 || least > most || most > MaxBytes {
		return fmt.Errorf("%w: %d to %d bytes is not within 0 to %d", ErrBadSize, least, most, MaxBytes)
	}
	return nil
}

// Bounds returns the smallest and the largest size that can be drawn, in bytes.
func (s Size) Bounds() (least, most int) { return s.min, s.max }

// Bytes returns the size of the body of message seq, in bytes.
func (s Size) Bytes(seed uint64, seq int64) int {
	if s.min == s.max {
		return s.min
	}
	random := bitsOf(seed, sizeStream, seq, 0)
	switch s.kind {
	case lognormalSize:
		return s.lognormal(unit(random))
	case weightedSize:
		return s.weighted(unit(random))
	default:
		return s.min + below(random, s.max-s.min+1)
	}
}

// lognormal returns the quantile of the distribution at u.
func (s Size) lognormal(u float64) int {
	z := math.Sqrt2 * math.Erfinv(2*u-1)
	bytes := math.Round(math.Exp(s.location + s.sigma*z))
	return int(min(max(bytes, float64(s.min)), float64(s.max)))
}

func (s Size) weighted(u float64) int {
	last := len(s.upTo) - 1
	return s.sizes[sort.Search(last, func(i int) bool { return u*s.upTo[last] < s.upTo[i] })]
}
