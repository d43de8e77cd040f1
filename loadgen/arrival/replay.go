package arrival

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// MaxReplay bounds the arrivals of a replay: they are held in memory, 8 bytes each, 80 MB in all.
const MaxReplay = 10_000_000

// Errors of NewReplay and ReadReplay, beside ErrLongSpan.
var (
	// ErrNoTimes is returned when there is no arrival at all.
	ErrNoTimes = errors.New("no arrival times")
	// ErrOrder is returned for an arrival before the one in front of it, or before the start.
	ErrOrder = errors.New("arrival times go back")
	// ErrLongReplay is returned for more than MaxReplay arrivals, or more bytes than MaxReplayBytes.
	ErrLongReplay = errors.New("the replay is too long")
)

type replay struct {
	times []time.Duration
	total *big.Rat
}

// NewReplay returns arrivals at given instants, offsets from the start, which must not go back.
//
//	N(t)   = number of i with t_i < t       t_i  given instants, seconds, i = 0 .. n-1
//	due(k) = t_k
//	r(t)   = N(s + 1) - N(s)                s    t rounded down to a whole second
//
//	N
//	4 |               ________
//	3 |          ____|            span = t_3 + 1 ns
//	2 |      ___|
//	1 |_____|
//	0 +------------------------ t
//	 t_0   t_1 t_2  t_3
//
// The integral is a staircase, so the rate is that of the second around t. The replay ends with its last arrival; a flat
// shape of rate 0 after it, in a sequence, makes a pause. times is kept and must not be changed afterwards. Errors wrap
// ErrNoTimes, ErrOrder, ErrLongReplay or ErrLongSpan.
func NewReplay(times []time.Duration) (Shape, error) {
	if len(times) == 0 {
		return nil, ErrNoTimes
	}
	if len(times) > MaxReplay {
		return nil, fmt.Errorf("%w: more than %d arrivals", ErrLongReplay, MaxReplay)
	}
	if times[0] < 0 || !slices.IsSorted(times) {
		return nil, ErrOrder
	}
	if last := times[len(times)-1]; last >= MaxSpan {
		return nil, fmt.Errorf("replay for %s: %w", last, ErrLongSpan)
	}
	return &replay{times: times, total: big.NewRat(int64(len(times)), 1)}, nil
}

// before returns how many arrivals are due before t.
func (r *replay) before(t time.Duration) int {
	n, _ := slices.BinarySearch(r.times, t)
	return n
}

// Rate implements Shape.
func (r *replay) Rate(t time.Duration) float64 {
	second := min(max(t, 0), r.Span()-1).Truncate(time.Second)
	return float64(r.before(second+time.Second) - r.before(second))
}

// Integral implements Shape.
func (r *replay) Integral(t time.Duration) float64 { return float64(r.before(t)) }

// Invert implements Shape.
func (r *replay) Invert(n float64) time.Duration {
	if n >= float64(len(r.times)) {
		return r.Span()
	}
	return r.times[int(max(n, 0))]
}

// Span implements Shape.
func (r *replay) Span() time.Duration { return r.times[len(r.times)-1] + 1 }

func (r *replay) expected() *big.Rat { return r.total }

func (r *replay) schedule(before *big.Rat) func(int64) time.Duration { return byInverse(r, before) }
