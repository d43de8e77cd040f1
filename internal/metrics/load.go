package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/latency"
)

// load is the instruments of the load side.
type load struct {
	arrivals prometheus.Counter
	shed     prometheus.Counter
	first    prometheus.Counter
	again    prometheus.Counter
	outcomes []prometheus.Counter // by outcome
	pending  prometheus.Gauge
}

// Values of the label write.
const (
	writeFirst = "first"
	writeAgain = "again"
)

func newLoad(b *builder, l *latency.Set) load {
	b.durations("schedule_lag_seconds",
		"First write of a message less its due instant: the generator's own health. Measured part only.", l.ScheduleLag)
	b.durations("confirm_latency_seconds", "Confirm seen less the write that was confirmed. Measured part only.", l.Confirm)
	b.durations("acceptance_latency_seconds",
		"Confirm seen less the due instant, free of coordinated omission. Measured part only.", l.Acceptance)
	b.durations("relay_lag_seconds",
		"Confirm seen less the writing of the outbox row. Measured part, and runs with an outbox, only.", l.RelayLag)
	publishes := b.counters("publishes_total",
		"Writes of messages by the producer; again is every one after a message's first.",
		"write", []string{writeFirst, writeAgain})
	return load{
		first: publishes.at(writeFirst), again: publishes.at(writeAgain),
		arrivals: b.counter("arrivals_total", "Messages that became due, warm-up included."),
		shed:     b.counter("shed_total", "Messages due but never sent, because the window stayed full beyond its bound."),
		outcomes: b.counters("publish_outcomes_total", "Publishes by the producer, by what came of them.",
			"outcome", names(broker.Outcomes[:])).listed(names(broker.Outcomes[:])...),
		pending: b.gauge("outbox_pending_messages", "Outbox rows that are written and not yet confirmed."),
	}
}

// Queued notes an event committed with its order, to be relayed.
func (l *load) Queued() { l.pending.Inc() }

// Relayed notes an outbox row's first confirm.
func (l *load) Relayed() { l.pending.Dec() }

// Arrived implements event.LoadObserver.
func (l *load) Arrived(event.Arrival) { l.arrivals.Inc() }

// Shed implements event.LoadObserver.
func (l *load) Shed(int64, time.Duration) { l.shed.Inc() }

// Sent implements event.LoadObserver.
func (l *load) Sent(e event.Sent) {
	if e.Republish {
		l.again.Inc()
		return
	}
	l.first.Inc()
}

// Settled implements event.LoadObserver.
func (l *load) Settled(e event.Settled) { l.outcomes[e.Outcome].Inc() }
