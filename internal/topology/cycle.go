package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrLosingCycle is returned for a topology in which the broker's own dead-lettering leads a message round in a circle
// without a rejection or a republish in it. RabbitMQ (3.10 to 4.3) detects such a circle: at-most-once drops the message
// in the first round, at-least-once holds it for ever.
var ErrLosingCycle = errors.New("the dead-letter cycle loses messages")

// edge is one automatic move of a message: expiry or the delivery limit takes it from one queue to another. A rejection
// by a consumer takes the same road, but it breaks the circle for the broker, so it is no edge.
type edge struct{ to, reason string }

// checkCycles looks for a circle of automatic moves.
func checkCycles(p *Plan) error {
	edges := automaticMoves(p)
	for _, q := range p.Queues {
		if path := circle(edges, q.Name, nil); path != nil {
			return fmt.Errorf("%w: %s; send the delivery limit to parking instead", ErrLosingCycle, strings.Join(path, " "))
		}
	}
	return nil
}

// automaticMoves follows the intended settings of each queue through the bindings.
func automaticMoves(p *Plan) map[string][]edge {
	edges := make(map[string][]edge, len(p.Queues))
	for _, q := range p.Queues {
		exchange, ok := q.Intended[keyDeadLetterExchange].(string)
		if !ok {
			continue // without a dead-letter exchange an expired message is gone, by design of its owner
		}
		key, _ := q.Intended[keyDeadLetterKey].(string)
		for _, reason := range automaticReasons(q.Intended) {
			for _, target := range p.route(exchange, key) {
				edges[q.Name] = append(edges[q.Name], edge{target, reason})
			}
		}
	}
	return edges
}

func automaticReasons(settings map[string]any) []string {
	var reasons []string
	if _, ok := settings[keyMessageTTL]; ok {
		reasons = append(reasons, "expiry")
	}
	if limit, ok := settings[keyDeliveryLimit].(int64); ok && limit >= 0 {
		reasons = append(reasons, "delivery limit")
	}
	return reasons
}

// route returns the queues of the plan that a message reaches from an exchange.
func (p *Plan) route(exchange, key string) []string {
	if exchange == "" {
		return []string{key}
	}
	var queues []string
	for _, b := range p.Bindings {
		if b.Exchange == exchange && keyMatches(b.Key, key) {
			queues = append(queues, b.Queue)
		}
	}
	return queues
}

// keyMatches is topic matching for patterns without "#", of which plans have none; a direct key is a pattern of plain
// words.
func keyMatches(pattern, key string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(key, ".")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

// circle returns the way from the last queue of path+[queue] back to a queue already on it, as alternating names and
// reasons; nil when there is none.
func circle(edges map[string][]edge, queue string, path []string) []string {
	if slices.Contains(path, queue) {
		return append(path, queue)
	}
	for _, e := range edges[queue] {
		next := append(slices.Clone(path), queue, "-("+e.reason+")->")
		if found := circle(edges, e.to, next); found != nil {
			return found
		}
	}
	return nil
}
