package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Summary is what results say of one recorder. All but Count are seconds, each at most 0.1 % above the sample that it
// stands for; so P999 is never above Max. The zero value is no summary: a recorder without samples has none.
type Summary struct {
	Count int64   `json:"count"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Summary returns count, mean and quantiles of all samples so far, and false when there are none.
func (r *Recorder) Summary() (Summary, bool) {
	samples, _, _ := r.snapshot()
	if samples.TotalCount() == 0 {
		return Summary{}, false
	}
	return summarise(samples), true
}

func summarise(h *hdrhistogram.Histogram) Summary {
	q := h.ValueAtPercentilesSlice([]float64{50, 90, 95, 99, 99.9})
	return Summary{
		Count: h.TotalCount(),
		Min:   seconds(h.Min()),
		Mean:  h.Mean() / float64(time.Second),
		P50:   seconds(q[0]),
		P90:   seconds(q[1]),
		P95:   seconds(q[2]),
		P99:   seconds(q[3]),
		P999:  seconds(q[4]),
		Max:   seconds(h.Max()),
	}
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// Quantile returns the duration that a share q, 0 to 1, of all samples does not exceed, and false when there are none.
func (r *Recorder) Quantile(q float64) (time.Duration, bool) {
	samples, _, _ := r.snapshot()
	if samples.TotalCount() == 0 {
		return 0, false
	}
	return time.Duration(samples.ValueAtPercentile(q * 100)), true
}
