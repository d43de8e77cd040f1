package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/workers/breaker"
)

// links is the instruments of connections.
type links struct {
	reconnects family[prometheus.Counter]
	cancels    prometheus.Counter
	blocked    family[*span]
}

// roles of connections, as package event names them.
var roles = []string{"producer", "relay", "worker", "republisher"}

func newLinks(b *builder) links {
	return links{
		reconnects: b.counters("reconnects_total", "Connections made again after one was lost.", "role", roles),
		cancels:    b.counter("consumer_cancels_total", "Consumers cancelled by the broker."),
		blocked: spans(
			b.gauges("blocked_connections", "Connections that the broker blocks now, by an alarm.", "role", roles),
			b.counters("blocked_seconds_total",
				"Time that connections were blocked, added up over connections; it moves when their number changes.", "role", roles)),
	}
}

// Reconnected implements event.LinkObserver.
func (l *links) Reconnected(role string, _ time.Duration) { l.reconnects.at(role).Inc() }

// ConsumerCancelled implements event.LinkObserver.
func (l *links) ConsumerCancelled(time.Duration) { l.cancels.Inc() }

// Blocked implements event.LinkObserver.
func (l *links) Blocked(role string, blocked bool, at time.Duration) {
	if blocked {
		l.blocked.at(role).change(1, at)
	} else {
		l.blocked.at(role).change(-1, at)
	}
}

// span is the time during which things were in some condition, added up over the things.
type span struct {
	now     prometheus.Gauge // how many are; nil shows none
	seconds prometheus.Counter

	mu    sync.Mutex // guards the next two
	count int
	since time.Duration
}

// spans pairs the series of two instruments over the same closed set.
func spans(now family[prometheus.Gauge], seconds family[prometheus.Counter]) family[*span] {
	f := family[*span]{of: make(map[string]*span), outside: &span{now: now.outside, seconds: seconds.outside}}
	for value, gauge := range now.of {
		f.of[value] = &span{now: gauge, seconds: seconds.at(value)}
	}
	return f
}

// change adds the time since the last change and then delta things; there are never fewer than none.
func (s *span) change(delta int, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.become(s.count+delta, at)
}

// set makes the count 1 or 0.
func (s *span) set(is bool, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.become(int(truth(is)), at)
}

// become adds the time since the last change; mu is held.
func (s *span) become(count int, at time.Duration) {
	if elapsed := at - s.since; elapsed > 0 { // events of several goroutines may come out of order
		s.seconds.Add(float64(s.count) * elapsed.Seconds())
		s.since = at
	}
	s.count = max(count, 0)
	if s.now != nil {
		s.now.Set(float64(s.count))
	}
}

// circuit is the instruments of the circuit breaker.
type circuit struct {
	states family[prometheus.Gauge]
	opens  prometheus.Counter
	open   *span
}

func newCircuit(b *builder) circuit {
	c := circuit{
		states: b.gauges("breaker_state", "1 for the state that the circuit breaker is in, 0 for the others.",
			"state", names(breaker.States[:])),
		opens: b.counter("breaker_opens_total", "Times that the circuit breaker opened, from closed and from half-open."),
		open: &span{seconds: b.counter("breaker_open_seconds_total",
			"Time that the circuit breaker was open or half-open; it moves when the state changes.")},
	}
	only(c.states, breaker.Closed.String())
	return c
}

// BreakerChanged implements event.BreakerObserver.
func (c *circuit) BreakerChanged(state string, at time.Duration) {
	only(c.states, state)
	if state == breaker.Open.String() {
		c.opens.Inc()
	}
	c.open.set(state != breaker.Closed.String(), at)
}
