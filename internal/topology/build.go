package topology

import (
	"errors"
	"maps"
	"regexp"
	"strings"
	"time"
)

// Names without prefix, and keys.
const (
	ordersExchange     = "orders"
	retryExchange      = "inventory.orders.retry"
	deadLetterExchange = "inventory.orders.dlx"
	workQueue          = "inventory.orders"
	parkingQueue       = "inventory.orders.parking"
	eventsExchange     = "inventory.events"
	eventsQueue        = "inventory.events"

	workBindingKey = "order.*"
	// returnKey is the routing key of a retry that returns through the orders exchange. It matches workBindingKey, and
	// so also whatever else is bound there: that is the leak which return_via exchange shows.
	returnKey  = "order.retry"
	parkingKey = "inventory.orders.failed"
	// eventsBindingKey takes every event of the inventory service: their keys are their types, "stock.refused" for one.
	eventsBindingKey = "stock.*"
)

// Keys of a policy; as queue arguments they carry the prefix "x-".
const (
	keyDeadLetterExchange = "dead-letter-exchange"
	keyDeadLetterKey      = "dead-letter-routing-key"
	keyDeadLetterStrategy = "dead-letter-strategy"
	keyOverflow           = "overflow"
	keyDeliveryLimit      = "delivery-limit"
	keyConsumerTimeout    = "consumer-timeout"
	keyMaxLength          = "max-length"
	keyMessageTTL         = "message-ttl"
)

// policyPriority is high, so that a general policy of the cluster's owner does not take the queue: the highest wins.
const policyPriority = 1000

// Build makes a plan. Its error joins every problem; each wraps ErrBadSettings or ErrLosingCycle.
func Build(s Settings) (*Plan, error) {
	found := s.problems()
	if len(found) > 0 {
		return nil, errors.Join(found...)
	}
	b := builder{settings: s}
	plan := b.plan()
	if err := checkCycles(plan); err != nil {
		return nil, err
	}
	return plan, nil
}

type builder struct{ settings Settings }

func (b *builder) plan() *Plan {
	p := &Plan{
		Orders:     b.name(ordersExchange),
		Retry:      b.name(retryExchange),
		DeadLetter: b.name(deadLetterExchange),
		Work:       b.name(workQueue),
		Parking:    b.name(parkingQueue),
		ParkingKey: parkingKey,
	}
	p.Exchanges = []Exchange{{p.Orders, "topic"}, {p.Retry, "direct"}, {p.DeadLetter, "direct"}}
	p.Tiers = b.tiers()
	b.add(p, p.Work, Binding{p.Orders, p.Work, workBindingKey}, b.workSettings(p))
	for _, q := range p.TierQueues() {
		b.add(p, q.Queue, Binding{p.Retry, q.Queue, q.RoutingKey}, b.tierSettings(p, q))
	}
	b.add(p, p.Parking, Binding{p.DeadLetter, p.Parking, parkingKey}, b.parkingSettings())
	if b.settings.Events {
		b.addEvents(p)
	}
	return p
}

// addEvents appends what the workers' outgoing events go through.
func (b *builder) addEvents(p *Plan) {
	p.Events, p.EventsQueue = b.name(eventsExchange), b.name(eventsQueue)
	p.Exchanges = append(p.Exchanges, Exchange{p.Events, "topic"})
	b.add(p, p.EventsQueue, Binding{p.Events, p.EventsQueue, eventsBindingKey}, b.eventsSettings())
}

// name puts the prefix before a name, with a dot between unless the prefix ends in a separator of its own.
func (b *builder) name(plain string) string {
	prefix := b.settings.Prefix
	if prefix == "" || strings.ContainsAny(prefix[len(prefix)-1:], "._:-") {
		return prefix + plain
	}
	return prefix + "." + plain
}

// TierName returns the name of a delay: like Duration.String, without the zero parts ("5m" rather than "5m0s").
func TierName(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// add appends a queue with its binding and, where the settings come from policies, its policy.
func (b *builder) add(p *Plan, name string, binding Binding, settings map[string]any) {
	q := Queue{Name: name, Arguments: map[string]any{"x-queue-type": "quorum"}, Intended: settings}
	switch b.settings.Declare {
	case DeclareArguments:
		for key, value := range settings {
			q.Arguments["x-"+key] = value
		}
	case DeclarePolicy:
		p.Policies = append(p.Policies, Policy{
			Name:       "spillway." + name,
			Pattern:    "^" + regexp.QuoteMeta(name) + "$",
			ApplyTo:    "queues",
			Priority:   policyPriority,
			Definition: maps.Clone(settings),
		})
	}
	p.Queues = append(p.Queues, q)
	p.Bindings = append(p.Bindings, binding)
}

func (b *builder) workSettings(p *Plan) map[string]any {
	s := map[string]any{
		keyDeadLetterExchange: p.DeadLetter,
		keyDeadLetterKey:      parkingKey,
		keyDeadLetterStrategy: b.settings.DeadLetterStrategy,
		keyOverflow:           "reject-publish",
	}
	if b.settings.DeliveryLimitTo == ToRetry {
		s[keyDeadLetterExchange] = p.Retry
		s[keyDeadLetterKey] = p.Tiers[0].Queues[0].RoutingKey
	}
	b.putDeliveryLimit(s, b.settings.DeliveryLimit)
	b.putDelayedRetry(s, p)
	if t := b.settings.ConsumerTimeout; t > 0 {
		s[keyConsumerTimeout] = t.Milliseconds()
	}
	if b.settings.MaxLength > 0 {
		s[keyMaxLength] = int64(b.settings.MaxLength)
	}
	return s
}

// tierSettings lifts the delivery limit of a tier: nobody consumes it, but an audit reads it and gives everything back.
func (b *builder) tierSettings(p *Plan, q TierQueue) map[string]any {
	s := map[string]any{
		keyDeadLetterExchange: "",
		keyDeadLetterKey:      p.Work,
		keyDeadLetterStrategy: b.settings.DeadLetterStrategy,
		keyOverflow:           "reject-publish",
	}
	if b.settings.ReturnVia == ViaExchange {
		s[keyDeadLetterExchange] = p.Orders
		s[keyDeadLetterKey] = returnKey
	}
	if b.settings.strategy() != MessageTTL {
		s[keyMessageTTL] = q.Delay.Milliseconds()
	}
	b.putDeliveryLimit(s, Unlimited)
	return s
}

// parkingSettings is never empty, so that parking has a policy of its own and no general one can reach it.
func (b *builder) parkingSettings() map[string]any {
	s := map[string]any{keyOverflow: "reject-publish"}
	b.putDeliveryLimit(s, Unlimited)
	if r := b.settings.ParkingRetention; r > 0 {
		s[keyMessageTTL] = r.Milliseconds()
	}
	return s
}

// eventsSettings keeps every event until the audit has read it, as often as it may: like parking, but without a retention.
func (b *builder) eventsSettings() map[string]any {
	s := map[string]any{keyOverflow: "reject-publish"}
	b.putDeliveryLimit(s, Unlimited)
	return s
}

// putDeliveryLimit sets the limit. Brokers below 4.0 have none by default and refuse -1, so it is left out there.
func (b *builder) putDeliveryLimit(s map[string]any, limit int) {
	if limit == Unlimited && b.settings.BrokerMajor != 0 && b.settings.BrokerMajor < 4 {
		return
	}
	s[keyDeliveryLimit] = int64(limit)
}
