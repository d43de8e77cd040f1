package service

// Shares says how often handlers fail by themselves. Each is in [0, 1] and together they are at most 1. The zero value
// never fails.
type Shares struct {
	Transient float64 // of the attempts at messages that are none of the next three
	Permanent float64 // of the messages
	Refused   float64 // of the messages
	Dies      float64 // of the messages
	Unknown   float64 // of the attempts at messages that are none of these three
}

// Fate is what becomes of one attempt by the will of the profile. The zero value is None: the handler does its work.
type Fate uint8

// Fates, in the order of Shares.
const (
	None Fate = iota
	Transient
	Permanent
	Refused
	Dies // the handler ends without a result, each time
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
	case Dies:
		return "dies"
	case Unknown:
		return "unknown"
	default:
		return "invalid"
	}
}

// Draw returns the fate of one attempt at one message.
//
// Permanent, Refused and Dies are properties of the message, drawn by its sequence alone: every attempt at it, on every
// worker and after every redelivery, meets the same, as with a body that cannot be read or a SKU out of stock. Transient
// and Unknown are properties of the moment, drawn anew for each attempt at the messages left. So a message marked
// permanent parks on attempt 1, exactly the shares Permanent and Refused of the messages are expected to end that way,
// and a later attempt of the rest fails no more often than the first.
func Draw(s Shares, seed uint64, seq int64, attempt int) Fate {
	if s == (Shares{}) {
		return None
	}
	if f := pick(uniform(seed, saltMessage, seq, 0), part{Permanent, s.Permanent}, part{Refused, s.Refused}, part{Dies, s.Dies}); f != None {
		return f
	}
	return pick(uniform(seed, saltAttempt, seq, attempt), part{Transient, s.Transient}, part{Unknown, s.Unknown})
}

// part is a fate and its probability.
type part struct {
	fate  Fate
	share float64
}

// pick returns each fate with its probability, None otherwise.
func pick(u float64, parts ...part) Fate {
	for _, p := range parts {
		if u < p.share {
			return p.fate
		}
		u -= p.share
	}
	return None
}
