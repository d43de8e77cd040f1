package topology

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"
)

// Values of the settings that are chosen from a list.
const (
	AtLeastOnce = "at-least-once"
	AtMostOnce  = "at-most-once"

	ToParking = "parking"
	ToRetry   = "retry"

	ViaQueue    = "queue"
	ViaExchange = "exchange"

	ViaPublish = "publish"
	ViaReject  = "reject"

	DeclarePolicy    = "policy"
	DeclareArguments = "arguments"
	DeclareNone      = "none"
)

// Unlimited as a delivery limit lifts it.
const Unlimited = -1

// ErrBadSettings is wrapped by every problem that Build finds but the losing cycle.
var ErrBadSettings = errors.New("the topology settings are wrong")

// Settings is what a plan is made from. The zero value is not valid: defaults are the profile's business.
type Settings struct {
	// Prefix starts every exchange and queue name, joined by a dot; "" is none. Letters, digits, and "._:-".
	Prefix string
	// Strategy is how a failed message comes back: TTLTiers, DelayedRetry, Requeue, Sleep or MessageTTL; "" is TTLTiers.
	Strategy string
	// DelayedRetryType is of DelayedRetry, which returns it delays: DelayAll, DelayFailed or DelayReturned.
	DelayedRetryType string
	// Shards splits each queue of a tier into so many of the same delay; 0 is 1. Of TTLTiers.
	Shards int
	// DeadLetterStrategy is how the broker moves dead letters: AtLeastOnce or AtMostOnce.
	DeadLetterStrategy string
	// DeliveryLimit is how often a message may return to the work queue before it is dead-lettered; it is delivered
	// once more than that. Unlimited lifts it.
	DeliveryLimit int
	// DeliveryLimitTo is where the work queue's dead letters go: ToParking, or ToRetry, which Build refuses unless the
	// limit is lifted.
	DeliveryLimitTo string
	// ConsumerTimeout is how long a delivery from the work queue may stay unacked before its consumer is cancelled; 0 leaves it to
	// the broker.
	ConsumerTimeout time.Duration
	// MaxLength bounds the work queue, in messages; 0 is no bound. Beyond it publishes are nacked.
	MaxLength int
	// ReturnVia is how an expired retry returns: ViaQueue (default exchange, to the work queue alone) or ViaExchange
	// (through the orders exchange, to every queue that is bound to its key).
	ReturnVia string
	// ParkVia is how a worker parks: ViaPublish or ViaReject. Both ways end in the same queue.
	ParkVia string
	// ParkingRetention is the TTL of the parking lot; 0 keeps for ever.
	ParkingRetention time.Duration
	// Tiers are the nominal delays, strictly rising, at least one.
	Tiers []time.Duration
	// Jitter splits each tier into three queues at 0.8, 1.0 and 1.2 of its delay.
	Jitter bool
	// TimeScale multiplies every tier delay; above 0, at most 1.
	TimeScale float64
	// Declare says where the queues' settings come from: DeclarePolicy, DeclareArguments or DeclareNone (they exist
	// already).
	Declare string
	// Events adds an exchange and a queue for the workers' outgoing events.
	Events bool
	// BrokerMajor is the broker's major version; 0 is read as 4. Brokers below 4 have no default delivery limit and
	// refuse a negative one, so the key is left out for them.
	BrokerMajor int
}

// jitterFactors are the sub-tiers of a jittered tier, relative to its delay.
var jitterFactors = [...]float64{0.8, 1.0, 1.2}

// longestTTL is the largest message-ttl that RabbitMQ takes (3.10 to 4.3): it must fit an Erlang timer, 2^32 - 1 ms.
const longestTTL = (1<<32 - 1) * time.Millisecond

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{0,64}$`)

// problems returns everything that is wrong with the settings, each as an error of its own.
func (s *Settings) problems() []error {
	var found []error
	add := func(format string, args ...any) {
		found = append(found, fmt.Errorf("%w: "+format, append([]any{ErrBadSettings}, args...)...))
	}
	if !prefixPattern.MatchString(s.Prefix) {
		add("prefix %q: want at most 64 letters, digits and any of \"._:-\"", s.Prefix)
	}
	for _, c := range s.choices() {
		if c.value != c.one && c.value != c.two && (c.three == "" || c.value != c.three) {
			add("%s is %q: want %s", c.name, c.value, c.wanted())
		}
	}
	if s.DeliveryLimit < Unlimited {
		add("delivery_limit is %d: want -1 (no limit) or more", s.DeliveryLimit)
	}
	if s.MaxLength < 0 {
		add("max_length is %d: want 0 (no bound) or more", s.MaxLength)
	}
	if r := s.ParkingRetention; r != 0 && (r < time.Millisecond || r > longestTTL) {
		add("parking_retention is %v: want 0 (for ever), or from 1ms to %v", r, longestTTL)
	}
	return append(append(found, s.strategyProblems()...), s.tierProblems()...)
}

func (s *Settings) tierProblems() []error {
	var found []error
	add := func(format string, args ...any) {
		found = append(found, fmt.Errorf("%w: "+format, append([]any{ErrBadSettings}, args...)...))
	}
	if !(s.TimeScale > 0 && s.TimeScale <= 1) { // written so that NaN is refused
		add("time_scale is %v: want above 0, at most 1", s.TimeScale)
		return found
	}
	if len(s.Tiers) == 0 {
		add("tiers is empty: want at least one delay")
	}
	for i, nominal := range s.Tiers {
		if nominal <= 0 {
			add("tiers[%d] is %v: want above 0", i, nominal)
			continue
		}
		if i > 0 && nominal <= s.Tiers[i-1] {
			add("tiers[%d] is %v, not above tiers[%d], %v: want rising delays", i, nominal, i-1, s.Tiers[i-1])
		}
		for _, factor := range s.factors() {
			if scaled := float64(nominal) * s.TimeScale * factor; scaled < float64(time.Millisecond) {
				add("tiers[%d], %v, is %v after time_scale %v and jitter: want at least 1ms", i, nominal, time.Duration(scaled), s.TimeScale)
				break
			}
		}
		if s.delay(nominal, s.longestFactor()) > longestTTL {
			add("tiers[%d] is %v: want at most %v after time scale and jitter", i, nominal, longestTTL)
		}
	}
	return found
}

type choice struct{ name, value, one, two, three string }

func (c choice) wanted() string {
	if c.three == "" {
		return fmt.Sprintf("%q or %q", c.one, c.two)
	}
	return fmt.Sprintf("%q, %q or %q", c.one, c.two, c.three)
}

func (s *Settings) choices() []choice {
	return []choice{
		{"dead_letter_strategy", s.DeadLetterStrategy, AtLeastOnce, AtMostOnce, ""},
		{"delivery_limit_to", s.DeliveryLimitTo, ToParking, ToRetry, ""},
		{"return_via", s.ReturnVia, ViaQueue, ViaExchange, ""},
		{"park_via", s.ParkVia, ViaPublish, ViaReject, ""},
		{"declare", s.Declare, DeclarePolicy, DeclareArguments, DeclareNone},
	}
}

// factors returns the sub-tiers' factors: one without jitter.
func (s *Settings) factors() []float64 {
	if s.Jitter {
		return jitterFactors[:]
	}
	return []float64{1}
}

func (s *Settings) longestFactor() float64 {
	f := s.factors()
	return f[len(f)-1]
}

// delay returns the TTL of a tier queue, rounded to whole milliseconds, the unit of message-ttl.
func (s *Settings) delay(nominal time.Duration, factor float64) time.Duration {
	ms := math.Round(float64(nominal) * s.TimeScale * factor / float64(time.Millisecond))
	if ms >= float64(math.MaxInt64/int64(time.Millisecond)) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
