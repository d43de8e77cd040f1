package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// load is the instruments of the load side.
type load struct {
	arrivals   prometheus.Counter
	shed       prometheus.Counter
	first      prometheus.Counter
	again      prometheus.Counter
	outcomes   []prometheus.Counter // by outcome
	lag        prometheus.Histogram
	confirm    prometheus.Histogram
	acceptance prometheus.Histogram
	relayLag   prometheus.Histogram
	pending    prometheus.Gauge
}

// Values of the label write.
const (
	writeFirst = "first"
	writeAgain = "again"
)

func newLoad(b *builder) load {
	publishes := b.counters("publishes_total",
		"Writes of messages by the producer; again is every one after a message's first.",
		"write", []string{writeFirst, writeAgain})
	return load{
		first: publishes.at(writeFirst), again: publishes.at(writeAgain),
		arrivals: b.counter("arrivals_total", "Messages that became due, warm-up included."),
		shed:     b.counter("shed_total", "Messages due but never sent, because the window stayed full beyond its bound."),
		outcomes: b.counters("publish_outcomes_total", "Publishes by the producer, by what came of them.",
			"outcome", names(broker.Outcomes[:])).listed(names(broker.Outcomes[:])...),
		lag: b.histogram("schedule_lag_seconds",
			"First write of a message less its due instant: the generator's own health. Measured part only.", latencyBuckets),
		confirm: b.histogram("confirm_latency_seconds",
			"Confirm seen less the write that was confirmed. Measured part only.", latencyBuckets),
		acceptance: b.histogram("acceptance_latency_seconds",
			"Confirm seen less the due instant, free of coordinated omission. Measured part only.", latencyBuckets),
		relayLag: b.histogram("relay_lag_seconds",
			"Confirm seen less the writing of the outbox row. Measured part, and runs with an outbox, only.", latencyBuckets),
		pending: b.gauge("outbox_pending_messages", "Outbox rows that are written and not yet confirmed."),
	}
}

// Written notes an order committed ahead of its event; lag is how late its writing began. queued says that the event was
// committed with it, to be relayed.
func (l *load) Written(lag time.Duration, warmup, queued bool) {
	if queued {
		l.pending.Inc()
	}
	if !warmup {
		l.lag.Observe(lag.Seconds())
	}
}

// Relayed notes an outbox row's first confirm.
func (l *load) Relayed(lag time.Duration, warmup bool) {
	l.pending.Dec()
	if !warmup {
		l.relayLag.Observe(lag.Seconds())
	}
}

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
	if !e.Warmup && !e.Relayed {
		l.lag.Observe((e.At - e.Scheduled).Seconds())
	}
}

// Settled implements event.LoadObserver.
func (l *load) Settled(e event.Settled) {
	l.outcomes[e.Outcome].Inc()
	if e.Warmup || e.Replay || e.Outcome != broker.Confirmed {
		return
	}
	l.confirm.Observe((e.At - e.Sent).Seconds())
	l.acceptance.Observe((e.At - e.Scheduled).Seconds())
}
