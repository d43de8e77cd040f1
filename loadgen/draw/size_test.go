package draw_test

import (
	"math"
	"slices"
	"testing"

	"spillway/loadgen/draw"
)

func sizes(s draw.Size, seed uint64) []int {
	all := make([]int, drawn)
	for seq := range all {
		all[seq] = s.Bytes(seed, int64(seq))
	}
	return all
}

func mean(all []int) float64 {
	sum := 0
	for _, each := range all {
		sum += each
	}
	return float64(sum) / float64(len(all))
}

func TestAFixedSizeIsFixed(t *testing.T) {
	t.Parallel()
	for seq := range int64(100) {
		if got := size(draw.FixedSize(512)).Bytes(1, seq); got != 512 {
			t.Fatalf("%d bytes, want 512", got)
		}
		if got := (draw.Size{}).Bytes(1, seq); got != 0 {
			t.Fatalf("%d bytes of the zero value, want 0", got)
		}
	}
}

func TestUniformSizesAreAllEquallyOften(t *testing.T) {
	t.Parallel()
	s := size(draw.UniformSize(480, 579))
	counts := make([]int, 100)
	for _, bytes := range sizes(s, 1) {
		counts[bytes-480]++ // a size out of range panics
	}
	checkChiSquare(t, counts, func(int) float64 { return 0.01 })
	if least, most := s.Bounds(); least != 480 || most != 579 {
		t.Errorf("bounds %d and %d, want 480 and 579", least, most)
	}
}

func TestLognormalSizesHaveTheQuantilesOfTheirLaw(t *testing.T) {
	t.Parallel()
	const median, sigma = 20_000.0, 0.8
	all := sizes(size(draw.LognormalSize(median, sigma, 0, draw.MaxBytes)), 5)
	for _, row := range []struct{ share, z float64 }{
		{0.01, -2.3263}, {0.1, -1.2816}, {0.25, -0.6745}, {0.5, 0}, {0.75, 0.6745}, {0.9, 1.2816}, {0.99, 2.3263}, {0.999, 3.0902},
	} {
		below := 0
		for _, bytes := range all {
			if float64(bytes) < median*math.Exp(sigma*row.z) {
				below++
			}
		}
		deviation := math.Sqrt(row.share * (1 - row.share) / drawn)
		if got := float64(below) / drawn; math.Abs(got-row.share) > 3.5*deviation+1e-4 {
			t.Errorf("%.5f of the sizes are below the quantile of %v", got, row.share)
		}
	}
	want := median * math.Exp(sigma*sigma/2)
	deviation := want * math.Sqrt((math.Exp(sigma*sigma)-1)/drawn)
	if got := mean(all); math.Abs(got-want) > 3.5*deviation {
		t.Errorf("mean %.0f, want %.0f within %.0f", got, want, 3.5*deviation)
	}
}

func TestLognormalSizesBeyondABoundAreTheBound(t *testing.T) {
	t.Parallel()
	s := size(draw.LognormalSize(1000, 1, 500, 4000))
	all := sizes(s, 6)
	at := func(bytes int) (n float64) {
		for _, each := range all {
			if each == bytes {
				n++
			}
		}
		return n / drawn
	}
	if least, most := slices.Min(all), slices.Max(all); least != 500 || most != 4000 {
		t.Errorf("sizes from %d to %d, want 500 to 4000", least, most)
	}
	// ln 2 = 0.6931 is 0.6931 standard deviations: 24.4 % lie below. ln 4 is 1.3863: 8.28 % above.
	if got := at(500); math.Abs(got-0.2441) > 0.004 {
		t.Errorf("%.4f of the sizes are the least, want 0.2441", got)
	}
	if got := at(4000); math.Abs(got-0.0828) > 0.003 {
		t.Errorf("%.4f of the sizes are the most, want 0.0828", got)
	}
	slices.Sort(all)
	if got := all[drawn/2]; got < 990 || got > 1010 {
		t.Errorf("median %d, want 1000 as if there were no bounds", got)
	}
}

func TestWeightedSizesComeInProportion(t *testing.T) {
	t.Parallel()
	list := []draw.Weight{{512, 90}, {65_536, 0.5}, {4096, 9.5}}
	s := size(draw.WeightedSize(list))
	list[0].Bytes = 7 // a copy was taken
	index := map[int]int{512: 0, 65_536: 1, 4096: 2}
	counts := make([]int, 4)
	for _, bytes := range sizes(s, 2) {
		i, known := index[bytes]
		if !known {
			t.Fatalf("%d bytes are not in the list", bytes)
		}
		counts[i]++
	}
	checkChiSquare(t, counts, func(i int) float64 { return []float64{0.9, 0.005, 0.095, 0}[i] })
	if least, most := s.Bounds(); least != 512 || most != 65_536 {
		t.Errorf("bounds %d and %d, want 512 and 65536", least, most)
	}
}
