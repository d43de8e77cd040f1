package main

import (
	"math/rand/v2"
	"slices"
)

// interval is an estimate with its 95 % bounds.
type interval struct {
	Low  float64 `json:"low"`
	Mid  float64 `json:"mid"`
	High float64 `json:"high"`
}

// exactly is the interval of a value that is no estimate.
func exactly(x float64) interval { return interval{x, x, x} }

// resamples is how often the values are drawn anew; the bounds' own error is then below 1 % of their distance.
const resamples = 10_000

// bootstrap returns the median of the values with its percentile bootstrap interval (Efron 1979): values are drawn with
// replacement, as many as there are, and the figures of these samples are cut at 2.5 % and 97.5 %. With the same values it
// returns the same. Of a single value all three are that value: one pair proves nothing about another.
func bootstrap(values []float64) interval { return resampled(values, median) }

// resampled is bootstrap for another figure than the median.
func resampled(values []float64, figure func([]float64) float64) interval {
	source := rand.New(rand.NewPCG(1, 2)) // fixed, so that a page can be made again from its figures
	figures, sample := make([]float64, resamples), make([]float64, len(values))
	for i := range figures {
		for k := range sample {
			sample[k] = values[source.IntN(len(values))]
		}
		figures[i] = figure(sample)
	}
	slices.Sort(figures)
	return interval{figures[resamples*25/1000], figure(values), figures[resamples*975/1000-1]}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// median returns the middle value, or the mean of the two. It does not change the slice.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// of takes one figure of every item.
func of[T any](items []T, figure func(T) float64) []float64 {
	out := make([]float64, len(items))
	for i, item := range items {
		out[i] = figure(item)
	}
	return out
}
