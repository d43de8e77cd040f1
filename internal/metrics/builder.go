package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "spillway"

// other is the series of label values from outside a closed set.
const other = "other"

// latencyBuckets are the upper bounds of every latency histogram, in seconds: 0.5 ms, below which a confirm over
// loopback hardly comes, to 60 s, beyond which an outage is the story and not its quantiles.
var latencyBuckets = []float64{
	0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
}

// builder makes instruments and registers them. It goes on after an error, so that one call says all that is wrong.
type builder struct {
	reg prometheus.Registerer
	err error
}

func (b *builder) register(c prometheus.Collector) {
	b.err = errors.Join(b.err, b.reg.Register(c))
}

func (b *builder) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	b.register(c)
	return c
}

func (b *builder) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	b.register(g)
	return g
}

// counters makes a counter for each value of a closed set of one label, and one for what lies outside.
func (b *builder) counters(name, help, label string, values []string) family[prometheus.Counter] {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
	b.register(vec)
	f := family[prometheus.Counter]{of: make(map[string]prometheus.Counter), outside: vec.WithLabelValues(other)}
	for _, v := range values {
		f.of[v] = vec.WithLabelValues(v)
	}
	return f
}

// gauges makes a gauge for each value of a closed set of one label, and one for what lies outside.
func (b *builder) gauges(name, help, label string, values []string) family[prometheus.Gauge] {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
	b.register(vec)
	f := family[prometheus.Gauge]{of: make(map[string]prometheus.Gauge), outside: vec.WithLabelValues(other)}
	for _, v := range values {
		f.of[v] = vec.WithLabelValues(v)
	}
	return f
}

// family is the series of one instrument by the value of its label. It is never changed after it was made, so it is
// read without a lock.
type family[T any] struct {
	of      map[string]T
	outside T
}

// at returns the series of a value, that of "other" for a value outside the set.
func (f family[T]) at(value string) T {
	if series, ok := f.of[value]; ok {
		return series
	}
	return f.outside
}

// listed returns the series of some values in their order, for those that are counted once or more a message: an index is
// found faster than a text. Index 0 is the series of what has no number.
func (f family[T]) listed(values ...string) []T {
	out := []T{f.outside}
	for _, v := range values {
		out = append(out, f.at(v))
	}
	return out
}

// only sets one gauge of a family to 1 and the others to 0, as for a state that is one of several.
func only(f family[prometheus.Gauge], value string) {
	for v, g := range f.of {
		g.Set(truth(v == value))
	}
	_, known := f.of[value]
	f.outside.Set(truth(!known))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// names returns the label values of a closed set of named things.
func names[T interface{ String() string }](of []T) []string {
	out := make([]string, len(of))
	for i, v := range of {
		out[i] = v.String()
	}
	return out
}
