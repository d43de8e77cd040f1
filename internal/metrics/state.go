package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// state is the gauges that are set from outside, by the probe and by the run's protocol.
type state struct {
	inFlight  prometheus.Gauge
	unacked   prometheus.Gauge
	debt      prometheus.Gauge
	ready     family[prometheus.Gauge]
	age       family[prometheus.Gauge]
	phase     family[prometheus.Gauge]
	fault     family[prometheus.Gauge]
	pool      family[prometheus.Gauge]
	poolLimit prometheus.Gauge
	poolWait  *total
}

// Places of SetOldestAge and queues of SetDepth, beside the tiers.
const (
	Work      = "work"
	Retry     = "retry"
	Parking   = "parking"
	Unsettled = "unsettled"
)

// Phases returns the phases of a run in their order. The slice is the caller's.
func Phases() []string {
	return []string{"warm-up", "load", "drain", "redrive", "audit"}
}

func newState(b *builder, o Options) state {
	queues := append([]string{Work, Parking}, o.Tiers...)
	places := append([]string{Work, Retry, Parking, Unsettled}, o.Tiers...)
	return state{
		inFlight: b.gauge("in_flight_messages", "Messages due and not known to be at the broker: waiting to be sent, or unanswered."),
		unacked:  b.gauge("unacked_messages", "Messages delivered to workers and not yet settled by them."),
		debt:     b.gauge("retry_debt_messages", "Messages that wait in retry tiers."),
		ready:    b.gauges("queue_ready_messages", "Messages ready in a queue, as the broker counts them.", "queue", queues),
		age: b.gauges("oldest_age_seconds",
			"Time since the oldest message entered the place; for unsettled, since it was due.", "place", places),
		phase: b.gauges("phase", "1 for the phase that the run is in, 0 for the others.", "phase", Phases()),
		fault: b.gauges("fault_active", "1 while a fault of this kind acts.", "kind", o.Faults),
		pool: b.gauges("pool_connections", "Connections of the database pool.",
			"state", []string{"acquired", "idle"}),
		poolLimit: b.gauge("pool_limit_connections", "Connections that the database pool may have."),
		poolWait: &total{counter: b.counter("pool_wait_seconds_total",
			"Time that handlers waited for a connection of the database pool, added up over handlers.")},
	}
}

// SetInFlight says how many publishes of the producer are unsettled.
func (s *state) SetInFlight(n int) { s.inFlight.Set(float64(n)) }

// SetUnacked says how many deliveries the workers hold.
func (s *state) SetUnacked(n int) { s.unacked.Set(float64(n)) }

// SetRetryDebt says how many messages lie in tiers, are delayed by the broker, or wait for dead-lettering.
func (s *state) SetRetryDebt(n int) { s.debt.Set(float64(n)) }

// SetDepth says how many messages are ready in a queue: Work, Parking, or a tier by its nominal name, whose sub-tiers
// the caller adds up.
func (s *state) SetDepth(queue string, ready int) { s.ready.at(queue).Set(float64(ready)) }

// SetOldestAge says how old the oldest message of a place is: Work, Retry, Parking, Unsettled, or a tier by its nominal
// name. 0 is an empty place.
func (s *state) SetOldestAge(place string, age time.Duration) { s.age.at(place).Set(age.Seconds()) }

// SetPhase says which of Phases the run is in.
func (s *state) SetPhase(phase string) { only(s.phase, phase) }

// SetFault says whether a fault acts.
func (s *state) SetFault(kind string, active bool) { s.fault.at(kind).Set(truth(active)) }

// SetPool says how many connections the database pool has in use and idle, and how many it may have.
func (s *state) SetPool(acquired, idle, limit int) {
	s.pool.at("acquired").Set(float64(acquired))
	s.pool.at("idle").Set(float64(idle))
	s.poolLimit.Set(float64(limit))
}

// SetPoolWait says how long handlers have waited for connections in all, since the pool was made. A lower total than
// the last is ignored: a counter never falls.
func (s *state) SetPoolWait(sum time.Duration) { s.poolWait.set(sum) }

// total is a counter that is told its sum rather than its steps.
type total struct {
	counter prometheus.Counter

	mu   sync.Mutex // guards last
	last time.Duration
}

func (t *total) set(sum time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sum > t.last {
		t.counter.Add((sum - t.last).Seconds())
		t.last = sum
	}
}
