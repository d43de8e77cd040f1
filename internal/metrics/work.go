package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/workers/retry"
)

// work is the instruments of the workers.
type work struct {
	delivered   prometheus.Counter
	redelivered prometheus.Counter
	handled     []prometheus.Counter // by result
	retries     family[prometheus.Counter]
	parked      family[prometheus.Counter]
	released    prometheus.Counter
	acks        prometheus.Counter
	republished family[prometheus.Counter]
	forgotten   prometheus.Counter
	perMessage  *whole
}

// retriesBuckets are upper bounds of the retries of one message: each of the first few, then by about a half.
var retriesBuckets = []float64{0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50}

func newWork(b *builder, o Options) work {
	b.durations("sojourn_seconds",
		"Effect or refusal committed less the due instant, free of coordinated omission. Measured part only.", o.Latencies.Sojourn)
	b.durations("service_seconds", "Handler start to COMMIT, of effects and refusals. Measured part only.", o.Latencies.Service)
	deliveries := b.counters("deliveries_total", "Deliveries to workers; redelivered is the broker's flag.",
		"redelivered", []string{"true", "false"})
	return work{
		delivered: deliveries.at("false"), redelivered: deliveries.at("true"),
		handled: b.counters("handled_total", "Finished calls of the handler, by what it made of the delivery.",
			"result", names(event.Results[:])).listed(names(event.Results[:])...),
		retries: b.counters("retries_total", "Copies confirmed in a retry tier, by the tier's nominal delay.",
			"tier", o.Tiers),
		parked:   b.counters("parked_total", "Messages put into the parking lot.", "reason", reasons()),
		released: b.counter("released_total", "Deliveries that went back to the work queue because their channel ended."),
		acks:     b.counter("acks_total", "Deliveries settled with the broker."),
		republished: b.counters("worker_publish_outcomes_total",
			"Publishes by workers, to retry tiers and parking, by what came of each try.", "outcome", names(broker.Outcomes[:])),
		forgotten: b.counter("inbox_forgotten_total", "Claims that the inbox's retention has let go."),
		perMessage: b.whole("message_retries",
			"Retries that a message had had when it was applied, refused or parked.", retriesBuckets),
	}
}

func reasons() []string {
	all := retry.Reasons()
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = string(r)
	}
	return out
}

// Delivered implements event.WorkObserver.
func (w *work) Delivered(e event.Delivered) {
	if e.Redelivered {
		w.redelivered.Inc()
	} else {
		w.delivered.Inc()
	}
}

// Forgotten counts claims that the inbox has let go.
func (w *work) Forgotten(n int) { w.forgotten.Add(float64(n)) }

// Handled implements event.WorkObserver.
func (w *work) Handled(e event.Handled) {
	w.handled[e.Result].Inc()
	if e.Result != event.Applied && e.Result != event.Refused {
		return
	}
	w.perMessage.observe(e.Attempt - 1)
}

// Retried implements event.WorkObserver.
func (w *work) Retried(e event.Retried) { w.retries.at(e.Tier).Inc() }

// Parked implements event.WorkObserver.
func (w *work) Parked(e event.Parked) {
	w.parked.at(e.Reason).Inc()
	w.perMessage.observe(e.Attempt - 1)
}

// Released implements event.WorkObserver.
func (w *work) Released(int64, time.Duration) { w.released.Inc() }

// Acked implements event.WorkObserver.
func (w *work) Acked(n int, _ time.Duration) { w.acks.Add(float64(max(n, 0))) }

// Republished implements event.WorkObserver.
func (w *work) Republished(outcome broker.Outcome, _ time.Duration) {
	w.republished.at(outcome.String()).Inc()
}
