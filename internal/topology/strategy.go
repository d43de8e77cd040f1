package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Strategies: how a message that failed, and is to be tried again, comes back to the work queue.
const (
	TTLTiers     = "ttl-tiers"     // a copy waits in a queue whose TTL is the delay, one for each delay
	DelayedRetry = "delayed-retry" // it is returned, and the broker holds it back (policy of RabbitMQ 4.3.1 and later)
	Requeue      = "requeue"       // it is returned, and comes again at once
	Sleep        = "sleep"         // the handler holds it for the delay, then returns it
	MessageTTL   = "message-ttl"   // a copy waits in one queue for all delays, with the delay as its own TTL
)

// Strategies returns every strategy, in the order in which they are reported.
func Strategies() []string { return []string{TTLTiers, DelayedRetry, Requeue, Sleep, MessageTTL} }

// Types of delayed retry: which returns wait. A return counts as failed when it raises the delivery count: a reject or a lost
// channel does, a nack does not (RabbitMQ 4.3).
const (
	DelayAll      = "all"
	DelayFailed   = "failed"
	DelayReturned = "returned"
)

// Keys of the delayed retry, in milliseconds but for the type.
const (
	keyDelayedRetryType = "delayed-retry-type"
	keyDelayedRetryMin  = "delayed-retry-min"
	keyDelayedRetryMax  = "delayed-retry-max"
)

// Names of what stands for a tier where there is none, and the key of the queue that all delays share.
const (
	requeueTier = "requeue"
	delayedTier = "delayed"
	sharedKey   = "all"
)

func (s *Settings) strategy() string {
	if s.Strategy == "" {
		return TTLTiers
	}
	return s.Strategy
}

func (s *Settings) shards() int { return max(1, s.Shards) }

// tiers returns the steps of the backoff as the strategy has them.
func (b *builder) tiers() []Tier {
	s := &b.settings
	switch s.strategy() {
	case Requeue:
		return []Tier{{Name: requeueTier, Queues: []TierQueue{{}}}}
	case DelayedRetry:
		first, last := s.Tiers[0], s.Tiers[len(s.Tiers)-1]
		return []Tier{{Name: delayedTier, Nominal: first, Queues: []TierQueue{{Delay: s.delay(first, 1), Most: s.delay(last, 1)}}}}
	}
	tiers := make([]Tier, len(s.Tiers))
	for i, nominal := range s.Tiers {
		tiers[i] = Tier{Name: TierName(nominal), Nominal: nominal, Queues: b.tierQueues(nominal)}
	}
	return tiers
}

// tierQueues returns the sub-tiers of one delay, each with its shards.
func (b *builder) tierQueues(nominal time.Duration) []TierQueue {
	var queues []TierQueue
	factors := b.settings.factors()
	for i, factor := range factors {
		key := TierName(nominal)
		if len(factors) > 1 {
			key = fmt.Sprintf("%s.%d", key, i+1)
		}
		for shard := range b.settings.shards() {
			queues = append(queues, b.tierQueue(key, shard, b.settings.delay(nominal, factor)))
		}
	}
	return queues
}

func (b *builder) tierQueue(key string, shard int, delay time.Duration) TierQueue {
	switch {
	case b.settings.strategy() == Sleep:
		return TierQueue{Delay: delay}
	case b.settings.strategy() == MessageTTL:
		key = sharedKey
	case b.settings.shards() > 1:
		key += ".s" + strconv.Itoa(shard+1)
	}
	return TierQueue{Queue: b.name(retryExchange) + "." + key, RoutingKey: key, Delay: delay}
}

// putDelayedRetry lets the broker hold back what is returned to the work queue.
func (b *builder) putDelayedRetry(s map[string]any, p *Plan) {
	if b.settings.strategy() != DelayedRetry {
		return
	}
	q := p.Tiers[0].Queues[0]
	s[keyDelayedRetryType] = b.settings.DelayedRetryType
	s[keyDelayedRetryMin], s[keyDelayedRetryMax] = q.Delay.Milliseconds(), q.Most.Milliseconds()
}

// strategyProblems returns what does not go with the strategy.
func (s *Settings) strategyProblems() []error {
	var found []error
	add := func(format string, args ...any) {
		found = append(found, fmt.Errorf("%w: "+format, append([]any{ErrBadSettings}, args...)...))
	}
	if !slices.Contains(Strategies(), s.strategy()) {
		add("strategy is %q: want one of %s", s.Strategy, strings.Join(Strategies(), ", "))
	}
	if t := s.DelayedRetryType; s.strategy() == DelayedRetry && t != DelayAll && t != DelayFailed && t != DelayReturned {
		add("delayed_retry_type is %q: want %q, %q or %q", t, DelayAll, DelayFailed, DelayReturned)
	}
	if s.DeliveryLimitTo == ToRetry && s.strategy() != TTLTiers {
		add("delivery_limit_to is %q: strategy %s has no tier that would let it go again", ToRetry, s.strategy())
	}
	if s.shards() > 1 && s.strategy() != TTLTiers {
		add("shards is %d: strategy %s has no tiers to split", s.Shards, s.strategy())
	}
	return found
}
