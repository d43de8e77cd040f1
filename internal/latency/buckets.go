package latency

import "time"

// Buckets returns how many samples so far are at most as long as each bound, how many there are in all, and their sum: what a
// Prometheus histogram shows. Bounds rise. Edges and sum are exact to the recorder's three digits.
func (r *Recorder) Buckets(bounds []time.Duration) (atMost []uint64, count uint64, sum time.Duration) {
	samples, _, _ := r.snapshot()
	atMost = make([]uint64, len(bounds))
	if samples.TotalCount() == 0 {
		return atMost, 0, 0
	}
	i, soFar := 0, uint64(0)
	for _, bar := range samples.Distribution() {
		for i < len(bounds) && bar.From > int64(bounds[i]) {
			atMost[i] = soFar
			i++
		}
		soFar += uint64(bar.Count)
	}
	for ; i < len(bounds); i++ {
		atMost[i] = soFar
	}
	return atMost, soFar, time.Duration(samples.Mean() * float64(samples.TotalCount()))
}
