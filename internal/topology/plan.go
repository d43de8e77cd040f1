// Package topology turns settings into a plan: the exchanges, queues, bindings and policies of the path under test. It is
// pure, talks to no broker, and imports no other package of this module; a driver carries the plan out.
//
// Invariants: every queue is quorum and durable; every policy names exactly one queue and is complete in itself, since
// only one policy applies to a queue; and no plan contains a dead-letter cycle that loses messages (see ErrLosingCycle).
package topology

import (
	"slices"
	"time"
)

// Plan is a topology to declare. It is built by Build and never changed.
type Plan struct {
	Exchanges  []Exchange `json:"exchanges"`
	Queues     []Queue    `json:"queues"` // the work queue, then the tiers in rising order, then parking, then events
	Bindings   []Binding  `json:"bindings"`
	Policies   []Policy   `json:"policies"`    // empty unless settings come from policies
	Orders     string     `json:"orders"`      // exchange that producers publish to
	Retry      string     `json:"retry"`       // exchange that workers publish retries to, with a TierQueue's RoutingKey
	DeadLetter string     `json:"dead_letter"` // exchange that parks, with ParkingKey
	Work       string     `json:"work"`        // queue that workers consume
	Parking    string     `json:"parking"`     // queue that nobody consumes
	ParkingKey string     `json:"parking_key"`
	Tiers      []Tier     `json:"tiers"`

	// Of a plan with events; "" without.
	Events      string `json:"events,omitempty"`       // exchange that the workers' outgoing events go to, by their type as key
	EventsQueue string `json:"events_queue,omitempty"` // queue that gathers them; nobody consumes it
}

// Exchange is one durable exchange.
type Exchange struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // "topic" or "direct"
}

// Queue is one durable quorum queue.
type Queue struct {
	Name string `json:"name"`
	// Arguments are given at the declaration: the queue type, and with DeclareArguments the settings too, prefixed
	// with "x-". They cannot change later without deleting the queue. Values are string or int64.
	Arguments map[string]any `json:"arguments"`
	// Intended is what must be in effect, by policy or by argument, under the policy's key names. Values are string or
	// int64. The broker's effective settings are compared with it, both ways, before load starts.
	Intended map[string]any `json:"intended"`
}

// Binding routes messages with a key from an exchange to a queue.
type Binding struct {
	Exchange string `json:"exchange"`
	Queue    string `json:"queue"`
	Key      string `json:"key"`
}

// Policy is one policy for one queue.
type Policy struct {
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"` // anchored and quoted: it matches one queue name and no other
	ApplyTo    string         `json:"apply_to"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"` // values are string or int64
}

// Tier is one retry delay. Without jitter it has one queue, with jitter three of neighbouring delays, and each of them as often as
// there are shards.
type Tier struct {
	Name    string        `json:"name"` // the nominal delay: "5s", "30s", "5m"
	Nominal time.Duration `json:"nominal"`
	Queues  []TierQueue   `json:"queues"`
}

// TierQueue is one queue of a tier. Delay is its TTL as the broker applies it: after time scale and jitter, in whole
// milliseconds.
type TierQueue struct {
	Queue      string        `json:"queue"` // "" where the message stays in the work queue, or in its handler's hands
	RoutingKey string        `json:"routing_key"`
	Delay      time.Duration `json:"delay"`
	Most       time.Duration `json:"most,omitempty"` // with it, attempt n waits n times the delay, at most this long
}

// TierQueues returns the queues of all tiers, each once.
func (p *Plan) TierQueues() []TierQueue {
	var all []TierQueue
	for _, t := range p.Tiers {
		for _, q := range t.Queues {
			if q.Queue != "" && !slices.ContainsFunc(all, func(known TierQueue) bool { return known.Queue == q.Queue }) {
				all = append(all, q)
			}
		}
	}
	return all
}

// QueueNames returns the names of all queues: the work queue, the tiers, parking, and events where the plan has
// them.
func (p *Plan) QueueNames() []string {
	names := make([]string, len(p.Queues))
	for i, q := range p.Queues {
		names[i] = q.Name
	}
	return names
}

// ShortestTier returns the smallest delay of any tier queue; 0 when there is no tier.
func (p *Plan) ShortestTier() time.Duration {
	var shortest time.Duration
	for _, t := range p.Tiers {
		for _, q := range t.Queues {
			if shortest == 0 || q.Delay < shortest && q.Delay > 0 {
				shortest = q.Delay
			}
		}
	}
	return shortest
}
