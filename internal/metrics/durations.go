package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/internal/latency"
)

// durations shows a recorder of package latency as a histogram. It is read when somebody asks for the page, so a sample costs
// nothing here: an instrument of its own for each of six durations took half of what all metrics take.
type durations struct {
	recorder *latency.Recorder
	desc     *prometheus.Desc
}

var bounds = durationsOf(latencyBuckets)

func durationsOf(seconds []float64) []time.Duration {
	out := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out
}

func (b *builder) durations(name, help string, r *latency.Recorder) {
	b.register(durations{r, prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil)})
}

// Describe implements prometheus.Collector.
func (d durations) Describe(to chan<- *prometheus.Desc) { to <- d.desc }

// Collect implements prometheus.Collector.
func (d durations) Collect(to chan<- prometheus.Metric) {
	atMost, count, sum := d.recorder.Buckets(bounds)
	buckets := make(map[float64]uint64, len(atMost))
	for i, n := range atMost {
		buckets[latencyBuckets[i]] = n
	}
	to <- prometheus.MustNewConstHistogram(d.desc, count, sum.Seconds(), buckets)
}
