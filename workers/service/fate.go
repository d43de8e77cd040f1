package service

// Shares says how often handlers fail by themselves. Each is in [0, 1] and together they are at most 1. The zero value
// never fails.
type Shares struct {
	Transient float64 // of the attempts at messages that are neither permanent nor refused
	Permanent float64 // of the messages
	Refused   float64 // of the messages
	Unknown   float64 // of the attempts at messages that are neither permanent nor refused
}

// Fate is what becomes of one attempt by the will of the profile. The zero value is None: the handler does its work.
type Fate uint8

// Fates, in the order of Shares.
const (
	None Fate = iota
	Transient
	Permanent
	Refused
	Unknown
)

// String returns the name used in profiles; "none" for None and "invalid" beyond the set.
func (f Fate) String() string {
	switch f {
	case None:
		return "none"
	case Transient:
		return "transient"
	case Permanent:
		return "permanent"
	case Refused:
		return "refused"
	case Unknown:
		return "unknown"
	default:
		return "invalid"
	}
}

// Draw returns the fate of one attempt at one message.
//
// Permanent and Refused are properties of the message, drawn by its sequence alone: every attempt at it, on every
// worker and after every redelivery, meets the same, as with a body that cannot be read or a SKU out of stock. Transient
// and Unknown are properties of the moment, drawn anew for each attempt at the messages left. So a message marked
// permanent parks on attempt 1, exactly the shares Permanent and Refused of the messages are expected to end that way,
// and a later attempt of the rest fails no more often than the first.
func Draw(s Shares, seed uint64, seq int64, attempt int) Fate {
	if s == (Shares{}) {
		return None
	}
	if f := pick(uniform(seed, saltMessage, seq, 0), s.Permanent, Permanent, s.Refused, Refused); f != None {
		return f
	}
	return pick(uniform(seed, saltAttempt, seq, attempt), s.Transient, Transient, s.Unknown, Unknown)
}

// pick returns a with probability p, b with probability q, None otherwise.
func pick(u, p float64, a Fate, q float64, b Fate) Fate {
	switch {
	case u < p:
		return a
	case u < p+q:
		return b
	default:
		return None
	}
}
