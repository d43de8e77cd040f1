package broker

import "time"

// Backoff is the wait between tries to reconnect: it doubles from Min to Max, and each wait is drawn from its upper half,
// so that many clients which lost one broker do not come back as one. The zero value is not usable.
type Backoff struct {
	Min, Max time.Duration
}

// Reconnect is the backoff of every connection of a run: quick enough that a broker restart costs little, bounded so that
// its return is noticed within seconds.
var Reconnect = Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}

// Delay returns the wait before the n-th try, n from 0, for a draw from [0,1).
func (b Backoff) Delay(n int, draw float64) time.Duration {
	full := b.Max
	if b.Min <= b.Max>>n { // otherwise the doubled Min is above Max, or has no room in a Duration
		full = b.Min << n
	}
	return full/2 + time.Duration(draw*float64(full/2))
}
