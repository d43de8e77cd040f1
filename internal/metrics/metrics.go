// Package metrics shows a run to Prometheus while it goes on.
//
// Metrics hears the same events as the ledger and the latency recorders, and the probe feeds it gauges. It keeps no
// truth: a verdict is made from the ledger, a published latency from the full histograms, and these instruments are
// for watching. Labels come from closed sets, never from ids or error text; every series of a closed set exists from
// the start, at zero, so that a rate is right from the first event on. A label value from outside its set is counted
// under "other" rather than lost.
//
// METRICS.md lists every instrument and is made from the registry by this package's test.
package metrics

import (
	"fmt"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/internal/event"
	"spillway/internal/latency"
)

// Options says what a run's metrics are labelled with.
type Options struct {
	RunID    string   // constant label of every series
	Profile  string   // constant label of every series
	Version  string   // of this build
	Revision string   // of this build
	Tiers    []string // nominal names of the retry tiers, a closed set
	Faults   []string // kinds of faults, a closed set

	Latencies *latency.Set // the run's recorders, which hear the same events and are shown as histograms
}

// Metrics is the instruments of one run. It implements the observers of package event, is safe for concurrent use and
// never blocks for longer than an addition. Call New.
type Metrics struct {
	load
	work
	links
	circuit
	state
}

var (
	_ event.LoadObserver    = (*Metrics)(nil)
	_ event.WorkObserver    = (*Metrics)(nil)
	_ event.LinkObserver    = (*Metrics)(nil)
	_ event.BreakerObserver = (*Metrics)(nil)
)

// New registers the instruments of a run. It fails when the registry has them already, or when a run id or profile name
// is not valid UTF-8; then some may be registered, and the registry is of no further use.
func New(reg prometheus.Registerer, o Options) (*Metrics, error) {
	b := &builder{
		reg: prometheus.WrapRegistererWith(prometheus.Labels{"run_id": o.RunID, "profile": o.Profile}, reg),
	}
	b.buildInfo(o)
	m := &Metrics{load: newLoad(b, o.Latencies), work: newWork(b, o), links: newLinks(b), circuit: newCircuit(b), state: newState(b, o)}
	if b.err != nil {
		return nil, fmt.Errorf("register metrics: %w", b.err)
	}
	return m, nil
}

func (b *builder) buildInfo(o Options) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace,
		Name:      "build_info",
		Help:      "Always 1; the labels say which build ran.",
		ConstLabels: prometheus.Labels{
			"version": o.Version, "revision": o.Revision, "goversion": runtime.Version(),
		},
	})
	info.Set(1)
	b.register(info)
}
