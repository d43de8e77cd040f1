package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// maxWhole is the largest number that is told apart; it stands for all above.
const maxWhole = 64

// whole is a histogram of small whole numbers, for what is counted once a message: one addition, where a histogram of the
// library takes several.
type whole struct {
	desc    *prometheus.Desc
	buckets []float64 // upper bounds, whole numbers
	counts  [maxWhole + 1]atomic.Uint64
}

func (b *builder) whole(name, help string, buckets []float64) *whole {
	w := &whole{desc: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil), buckets: buckets}
	b.register(w)
	return w
}

func (w *whole) observe(n int) { w.counts[min(max(n, 0), maxWhole)].Add(1) }

// Describe implements prometheus.Collector.
func (w *whole) Describe(to chan<- *prometheus.Desc) { to <- w.desc }

// Collect implements prometheus.Collector.
func (w *whole) Collect(to chan<- prometheus.Metric) {
	buckets := make(map[float64]uint64, len(w.buckets))
	var count, sum uint64
	for n, next := 0, 0; n <= maxWhole; n++ {
		for ; next < len(w.buckets) && float64(n) > w.buckets[next]; next++ {
			buckets[w.buckets[next]] = count
		}
		c := w.counts[n].Load()
		count += c
		sum += c * uint64(n)
	}
	for _, bound := range w.buckets { // those above what is told apart hold all
		if _, passed := buckets[bound]; !passed {
			buckets[bound] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(w.desc, count, float64(sum), buckets)
}
