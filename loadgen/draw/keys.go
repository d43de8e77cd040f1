package draw

import (
	"fmt"
	"math"
)

const (
	// MaxKeys bounds the number of keys: indexes are exact as floats, and hold an int on every machine.
	MaxKeys = 1 << 30
	// MaxExponent bounds the exponent of Zipf's law. At 10 the second key has a thousandth of the first one's share.
	MaxExponent = 10
)

// Keys is a distribution over the keys 0 to n-1, SKUs for instance. The zero value always draws 0.
type Keys struct {
	n    int
	hot  float64 // share of key 0, drawn apart; 0 when there is none
	zipf *zipf   // over the keys that are not drawn apart; nil when these are uniform
}

// UniformKeys returns n keys, each drawn equally often. n is 1 to MaxKeys. Errors wrap ErrBadKeys.
//
//	P(i) = 1 / n       i = 0, 1, ... n-1
func UniformKeys(n int) (Keys, error) {
	if n < 1 || n > MaxKeys {
		return Keys{}, fmt.Errorf("%w: %d of them is not within 1 to %d", ErrBadKeys, n, MaxKeys)
	}
	return Keys{n: n}, nil
}

// ZipfKeys returns n keys of falling popularity, key 0 first.
//
//	P(i) = (i + 1)^-s / H        i  key, 0 .. n-1        s  exponent, above 0 to MaxExponent
//	                             H  sum of j^-s over j = 1 .. n
//	P
//	| *
//	| *
//	| * *
//	| * * * * . . . . . . . . .
//	+----------------------------- i
//
// With s = 1 and 1,000 keys the first has 13 % of all messages and the first ten have 39 %. Errors wrap ErrBadKeys.
func ZipfKeys(s float64, n int) (Keys, error) {
	k, err := UniformKeys(n)
	if err != nil {
		return Keys{}, err
	}
	if err := above(0, "the exponent", s); err != nil || s > MaxExponent {
		return Keys{}, fmt.Errorf("%w: an exponent of %v is not above 0 to %d", ErrBadKeys, s, MaxExponent)
	}
	k.zipf = newZipf(s, n)
	return k, nil
}

// WithHot returns the same number of keys with one hot among them: key 0 gets share of all draws, and the other n-1 are
// drawn as k draws, uniformly or by Zipf's law (key 1 is then the first).
//
//	P(0) = h                     h  share, above 0 to 1
//	P(i) = (1 - h) P'(i - 1)     P' the distribution of k over n-1 keys, i = 1 .. n-1
//
// A single key stays one. Errors wrap ErrBadKeys.
func (k Keys) WithHot(share float64) (Keys, error) {
	if !(share > 0 && share <= 1) {
		return Keys{}, fmt.Errorf("%w: a hot share of %v is not above 0 to 1", ErrBadKeys, share)
	}
	if k.hot > 0 {
		return Keys{}, fmt.Errorf("%w: there is a hot one already", ErrBadKeys)
	}
	k.hot = share
	if k.zipf != nil && k.n > 1 {
		k.zipf = newZipf(k.zipf.s, k.n-1)
	}
	return k, nil
}

// N returns the number of keys.
func (k Keys) N() int { return max(1, k.n) }

// Index returns the key of message seq, 0 to N()-1.
func (k Keys) Index(seed uint64, seq int64) int {
	if k.n <= 1 {
		return 0
	}
	if k.hot == 0 {
		return k.among(k.n, seed, seq)
	}
	if unit(bitsOf(seed, hotStream, seq, 0)) < k.hot {
		return 0
	}
	return 1 + k.among(k.n-1, seed, seq)
}

// among draws one of n keys that are not hot.
func (k Keys) among(n int, seed uint64, seq int64) int {
	if k.zipf != nil {
		return k.zipf.index(seed, seq)
	}
	return below(bitsOf(seed, keyStream, seq, 0), n)
}

// zipf draws by rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from monotone
// discrete distributions"): exact, in constant memory, with about one attempt a draw whatever n and s are. A table of
// sums would take 8 bytes a key and a search through them.
//
//	h(x) = x^-s                            over keys counted from 1
//	H(x) = integral of h from 1 to x       (x^(1-s) - 1) / (1 - s), or ln x where s = 1
//
// The area under h from k - 1/2 to k + 1/2 is at least h(k), since h is convex. A point on that area is drawn by H's
// inverse and accepted on the last h(k) of it, so each k is accepted in proportion to h(k).
type zipf struct {
	s         float64
	n         float64
	low, high float64 // H at the start of the area of key 1, cut to h(1), and at the end of that of key n
	sure      float64 // a point at most this far below its key is accepted without computing more
}

func newZipf(s float64, n int) *zipf {
	z := &zipf{s: s, n: float64(n)}
	z.low = z.area(1.5) - 1
	z.high = z.area(z.n + 0.5)
	// The distance from k to where its accepted area begins grows with k; key 1 is accepted anywhere.
	z.sure = 2 - z.inverse(z.area(2.5)-z.height(2))
	return z
}

// maxAttempts bounds the attempts at a draw. At most one in fifty fails, at exponents about 3, so that all fail once in
// 10^27 draws.
const maxAttempts = 16

func (z *zipf) index(seed uint64, seq int64) int {
	k := 1.0
	for attempt := range uint64(maxAttempts) {
		u := z.low + unit(bitsOf(seed, keyStream, seq, attempt))*(z.high-z.low)
		x := z.inverse(u)
		k = min(max(math.Round(x), 1), z.n)
		if k-x <= z.sure || u >= z.area(k+0.5)-z.height(k) {
			break
		}
	}
	return int(k) - 1
}

func (z *zipf) height(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// area is H. Near s = 1 the closed form is 0 / 0; expm1 keeps its digits.
func (z *zipf) area(x float64) float64 {
	log, p := math.Log(x), 1-z.s
	if p == 0 {
		return log
	}
	return math.Expm1(p*log) / p
}

// inverse returns x with H(x) = a.
func (z *zipf) inverse(a float64) float64 {
	p := 1 - z.s
	if p == 0 {
		return math.Exp(a)
	}
	return math.Exp(math.Log1p(max(p*a, -1)) / p) // below -1 by a rounding only
}
