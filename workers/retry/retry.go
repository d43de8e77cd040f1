// Package retry decides what becomes of a message whose handling failed: it goes to a retry tier, or it is parked.
//
// A decision is a pure function of the failure and the budget. The package holds no clock and no state, publishes
// nothing, and does not class errors; workers and simulator call the same Decide. It is a leaf. All values are safe for
// concurrent reads.
//
// Invariants: every decision is either one route or one reason; a transient or unknown failure is retried fewer times
// than the budget has attempts; the zero Budget parks everything.
package retry

import "time"

// Class says what kind of failure it was. The zero value is invalid and is treated as Unknown: a failure that nobody
// classed is a new defect.
type Class uint8

const (
	_ Class = iota
	// Transient: a later attempt may not meet it (connection loss, deadlock, time-out, an unknown COMMIT).
	Transient
	// Permanent: every attempt would meet it. It parks at once.
	Permanent
	// Unknown: an error of no known class. It has a smaller budget.
	Unknown
	// NotYet: a read model is behind. It is retried until its deadline and costs no attempts.
	NotYet
)

// Classes lists every class, in the order in which they are reported.
var Classes = [...]Class{Transient, Permanent, Unknown, NotYet}

// String returns the name used in headers and metric labels; "invalid" for the zero value and beyond the set.
func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case Permanent:
		return "permanent"
	case Unknown:
		return "unknown"
	case NotYet:
		return "not-yet"
	default:
		return "invalid"
	}
}

// Route is one queue of a tier.
type Route struct {
	Key   string        // routing key at the retry exchange
	Delay time.Duration // TTL of the queue
	Most  time.Duration // with it, attempt n waits n times Delay, at most this long; 0 is the same delay each time
}

// delay returns how long a message waits after an attempt.
func (r Route) delay(attempt int) time.Duration {
	if r.Most == 0 {
		return r.Delay
	}
	return min(r.Delay*time.Duration(max(1, attempt)), r.Most)
}

// Tier is one step of the backoff. Its routes are the sub-tiers among which jitter picks; one route is no jitter.
type Tier struct {
	Name   string // nominal, "5s"; the name that results and metrics use
	Routes []Route
}

// Budget bounds the retries of a message. The zero value parks every failure.
type Budget struct {
	Attempts        int           // attempts of a failure in all, the first included; 0 parks the first
	UnknownAttempts int           // the same for unknown failures; more than Attempts has no effect
	MaxAge          time.Duration // no retry is begun once a message is this old; 0 is no bound
	Tiers           []Tier        // attempt 1 goes to the first, and so on; later attempts stay in the last
}

// Failure is one failed attempt. Born, Now and Deadline are offsets on one time base.
type Failure struct {
	Class    Class
	Reason   Reason        // of a permanent failure; PermanentFailure stands in for one outside the set
	Attempt  int           // the attempt that failed, 1-based
	Born     time.Duration // when the message occurred, or was redriven, which opens a new budget
	Now      time.Duration
	Deadline time.Duration // after which handling it is of no use; 0 is none
	Spread   float64       // in [0, 1): picks the sub-tier; see Spread
}

// Decision is what to do: when Park is set, park for Reason; otherwise publish to Key, where the message lies for Delay.
type Decision struct {
	Park   bool
	Reason Reason
	Tier   string
	Key    string
	Delay  time.Duration
}

// Decide returns what becomes of a message after a failure. The first rule that holds decides:
//
//  1. a permanent failure parks with its own reason;
//  2. attempts used up: parks with AttemptsExhausted, or UnknownExhausted where the smaller budget was the one; a
//     budget without tiers counts as used up;
//  3. Now - Born >= MaxAge: parks with AgeExhausted;
//  4. the deadline has passed, or would have by the time the retry returns: parks with DeadlinePassed, since the
//     attempt it would wait for is known to be of no use;
//  5. otherwise it is retried.
//
// Rule 3 looks at the age now and not at the age after the delay: a message is parked at most one delay later than its
// age budget says, and a tier longer than the budget left still gets its one attempt.
//
// A NotYet failure with a deadline or under an age budget skips rule 2: waiting is not failing. With neither it would
// wait for ever, so then its attempts count.
func (b *Budget) Decide(f Failure) Decision {
	if f.Class == Permanent {
		return park(permanentReason(f.Reason))
	}
	if reason, over := b.attemptsOver(f); over {
		return park(reason)
	}
	if b.MaxAge > 0 && f.Now-f.Born >= b.MaxAge {
		return park(AgeExhausted)
	}
	tier, route := b.route(f)
	delay := route.delay(f.Attempt)
	if f.Deadline != 0 && f.Now+delay >= f.Deadline {
		return park(DeadlinePassed)
	}
	return Decision{Tier: tier, Key: route.Key, Delay: delay}
}

func park(r Reason) Decision { return Decision{Park: true, Reason: r} }

func permanentReason(r Reason) Reason {
	if r.known() {
		return r
	}
	return PermanentFailure
}

func (b *Budget) attemptsOver(f Failure) (Reason, bool) {
	if !b.routable() {
		return AttemptsExhausted, true
	}
	switch f.Class {
	case Transient:
		return AttemptsExhausted, f.Attempt >= b.Attempts
	case NotYet:
		bounded := f.Deadline != 0 || b.MaxAge > 0
		return AttemptsExhausted, !bounded && f.Attempt >= b.Attempts
	default:
		return UnknownExhausted, f.Attempt >= min(b.Attempts, b.UnknownAttempts)
	}
}

// routable reports whether every tier has a route.
func (b *Budget) routable() bool {
	for _, t := range b.Tiers {
		if len(t.Routes) == 0 {
			return false
		}
	}
	return len(b.Tiers) > 0
}

// route picks the tier by attempt and the sub-tier by spread.
func (b *Budget) route(f Failure) (string, Route) {
	tier := b.Tiers[min(max(f.Attempt, 1), len(b.Tiers))-1]
	n := len(tier.Routes)
	i := int(f.Spread * float64(n))
	return tier.Name, tier.Routes[min(max(i, 0), n-1)]
}
