package draw_test

import (
	"fmt"
	"math"
	"testing"

	"spillway/loadgen/draw"
)

func counts(k draw.Keys, seed uint64) []int {
	all := make([]int, k.N())
	for seq := range int64(drawn) {
		all[k.Index(seed, seq)]++ // a key out of range panics
	}
	return all
}

// zipfOdds returns Zipf's law by its definition.
func zipfOdds(s float64, n int) func(i int) float64 {
	sum := 0.0
	for i := n; i > 0; i-- {
		sum += math.Pow(float64(i), -s)
	}
	return func(i int) float64 { return math.Pow(float64(i+1), -s) / sum }
}

func TestUniformKeysAreAllEquallyOften(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 1000} {
		checkChiSquare(t, counts(keys(draw.UniformKeys(n)), 1), func(int) float64 { return 1 / float64(n) })
	}
}

func TestOneKeyIsAlwaysTheFirst(t *testing.T) {
	t.Parallel()
	one := keys(draw.UniformKeys(1))
	for _, k := range []draw.Keys{{}, one, keys(draw.ZipfKeys(1, 1)), hot(0.2, one), hot(0.2, keys(draw.ZipfKeys(1, 1)))} {
		if got := counts(k, 1); len(got) != 1 || got[0] != drawn {
			t.Errorf("counts %v, want %d of one key", got, drawn)
		}
	}
}

func TestZipfKeysFollowTheirLaw(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		s float64
		n []int
	}{
		{0.01, []int{1000}},
		{0.5, []int{10, 100_000}},
		{1, []int{2, 1000, 100_000}},
		{1 + 1e-12, []int{1000}},
		{1.1, []int{100_000}},
		{2, []int{1000}},
		{3, []int{10, 100_000}}, // where most attempts fail
		{10, []int{2, 1000}},
	} {
		for _, n := range row.n {
			t.Run(fmt.Sprintf("exponent %v over %d", row.s, n), func(t *testing.T) {
				t.Parallel()
				checkChiSquare(t, counts(keys(draw.ZipfKeys(row.s, n)), 9), zipfOdds(row.s, n))
			})
		}
	}
}

func TestTheFirstKeysOfZipfHaveTheSharesOfTheDoc(t *testing.T) {
	t.Parallel()
	got, ten := counts(keys(draw.ZipfKeys(1, 1000)), 3), 0
	for _, n := range got[:10] {
		ten += n
	}
	if first := float64(got[0]) / drawn; math.Abs(first-0.1336) > 0.003 {
		t.Errorf("the first key has %.4f, want 0.1336", first)
	}
	if share := float64(ten) / drawn; math.Abs(share-0.3913) > 0.004 {
		t.Errorf("the first ten have %.4f, want 0.3913", share)
	}
}

func TestTheLastOfManyZipfKeysIsReached(t *testing.T) {
	t.Parallel()
	k := keys(draw.ZipfKeys(0.1, draw.MaxKeys))
	largest := 0
	for seq := range int64(drawn) {
		i := k.Index(1, seq)
		if i < 0 || i >= draw.MaxKeys {
			t.Fatalf("key %d", i)
		}
		largest = max(largest, i)
	}
	if largest < draw.MaxKeys/10_000*9_990 {
		t.Errorf("the largest of %d keys is %d", drawn, largest)
	}
}

func TestAHotKeyHasItsShareAndTheOthersTheirLaw(t *testing.T) {
	t.Parallel()
	law := zipfOdds(1.2, 99)
	for _, row := range []struct {
		name string
		keys draw.Keys
		odds func(i int) float64
	}{
		{"uniform", hot(0.3, keys(draw.UniformKeys(100))), func(int) float64 { return 0.7 / 99 }},
		{"uniform, two keys", hot(0.3, keys(draw.UniformKeys(2))), func(int) float64 { return 0.7 }},
		{"Zipf", hot(0.3, keys(draw.ZipfKeys(1.2, 100))), func(i int) float64 { return 0.7 * law(i-1) }},
		{"Zipf, two keys", hot(0.3, keys(draw.ZipfKeys(1.2, 2))), func(int) float64 { return 0.7 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			checkChiSquare(t, counts(row.keys, 4), func(i int) float64 {
				if i == 0 {
					return 0.3
				}
				return row.odds(i)
			})
		})
	}
	if got := counts(hot(1, keys(draw.UniformKeys(10))), 4)[0]; got != drawn {
		t.Errorf("a share of 1 got %d of %d draws", got, drawn)
	}
}
