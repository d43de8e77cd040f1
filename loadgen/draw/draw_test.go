package draw_test

import (
	"errors"
	"math"
	"testing"

	"spillway/loadgen/draw"
)

// drawn is how many draws a distribution is judged by.
const drawn = 100_000

func size(s draw.Size, err error) draw.Size {
	if err != nil {
		panic(err)
	}
	return s
}

func keys(k draw.Keys, err error) draw.Keys {
	if err != nil {
		panic(err)
	}
	return k
}

func hot(share float64, k draw.Keys) draw.Keys { return keys(k.WithHot(share)) }

// checkChiSquare holds counts against odds, for samples of which one in a thousand may fail when they are true. Cells that
// expect less than ten are taken together.
func checkChiSquare(t *testing.T, counts []int, odds func(i int) float64) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	chi, cells, got, want := 0.0, 0.0, 0.0, 0.0
	for i, n := range counts {
		got, want = got+float64(n), want+odds(i)*float64(total)
		if want >= 10 {
			chi += (got - want) * (got - want) / want
			cells, got, want = cells+1, 0, 0
		}
	}
	freedom := cells - 1
	if v := 2 / (9 * freedom); chi > freedom*math.Pow(1-v+3.0902*math.Sqrt(v), 3) {
		t.Errorf("chi-square %.1f over %v degrees of freedom", chi, freedom)
	}
}

func TestADrawDependsOnSeedAndSequenceOnly(t *testing.T) {
	t.Parallel()
	s, k := size(draw.UniformSize(1, 1<<20)), keys(draw.ZipfKeys(0.5, 1<<20))
	var forwards, backwards [1000][2]int
	for seq := range int64(1000) {
		forwards[seq] = [2]int{s.Bytes(7, seq), k.Index(7, seq)}
	}
	for seq := int64(999); seq >= 0; seq-- {
		backwards[seq] = [2]int{s.Bytes(7, seq), k.Index(7, seq)}
	}
	if forwards != backwards {
		t.Error("the order of the draws changes them")
	}
	same := 0
	for seq := range int64(1000) {
		if s.Bytes(8, seq) == forwards[seq][0] || k.Index(8, seq) == forwards[seq][1] {
			same++
		}
	}
	if same > 10 {
		t.Errorf("another seed gave %d of 1000 draws again", same)
	}
}

// A change here makes every stored seed mean another run.
func TestDrawsStayWhatTheyWere(t *testing.T) {
	t.Parallel()
	s, k := size(draw.UniformSize(0, 1_000_000)), keys(draw.UniformKeys(1_000_000))
	var got [3][2]int
	for seq := range got {
		got[seq] = [2]int{s.Bytes(42, int64(seq)), k.Index(42, int64(seq))}
	}
	if want := [3][2]int{{249812, 901597}, {40691, 885917}, {36820, 143962}}; got != want {
		t.Errorf("draws %v, want %v", got, want)
	}
}

// Draws that follow each other, those of neighbouring seeds, and size and key of one message know nothing of each other:
// pairs of them fill a 16 x 16 table evenly.
func TestDrawsAreIndependent(t *testing.T) {
	t.Parallel()
	s, k := size(draw.UniformSize(0, 15)), keys(draw.UniformKeys(16))
	h := hot(0.5, keys(draw.UniformKeys(17)))
	for _, row := range []struct {
		name string
		pair func(i int64) (int, int)
	}{
		{"of a message and the next", func(i int64) (int, int) { return s.Bytes(1, 2*i), s.Bytes(1, 2*i+1) }},
		{"of a message and the one 2^32 later", func(i int64) (int, int) { return k.Index(1, i), k.Index(1, i+1<<32) }},
		{"of neighbouring seeds", func(i int64) (int, int) { return k.Index(uint64(i), 0), k.Index(uint64(i)+1<<40, 0) }},
		{"of sequence and seed in exchanged roles", func(i int64) (int, int) { return k.Index(uint64(i), 1), k.Index(1, i) }},
		{"of a size and its key", func(i int64) (int, int) { return s.Bytes(3, i), k.Index(3, i) }},
		{"of a size and whether its key is hot", func(i int64) (int, int) {
			return s.Bytes(3, i), min(h.Index(3, i), 1)*8 + k.Index(4, i)%8
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			counts := make([]int, 256)
			for i := range int64(drawn) {
				a, b := row.pair(i)
				counts[a*16+b]++
			}
			checkChiSquare(t, counts, func(int) float64 { return 1.0 / 256 })
		})
	}
}

//nolint:paralleltest // allocations of the whole process are counted
func TestDrawingDoesNotAllocate(t *testing.T) {
	s := size(draw.WeightedSize([]draw.Weight{{100, 1}, {200, 2}}))
	l := size(draw.LognormalSize(512, 1, 1, 1<<20))
	k := hot(0.1, keys(draw.ZipfKeys(1, 1000)))
	seq := int64(0)
	if n := testing.AllocsPerRun(1000, func() { s.Bytes(1, seq); l.Bytes(1, seq); k.Index(1, seq); seq++ }); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func TestImpossibleArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	sizeOf := func(_ draw.Size, err error) error { return err }
	keysOf := func(_ draw.Keys, err error) error { return err }
	ten, one := keys(draw.UniformKeys(10)), draw.Weight{Bytes: 1, Weight: 1}
	for _, row := range []struct {
		name      string
		err, want error
	}{
		{"a negative size", sizeOf(draw.FixedSize(-1)), draw.ErrBadSize},
		{"a size above the bound", sizeOf(draw.FixedSize(draw.MaxBytes + 1)), draw.ErrBadSize},
		{"least above most", sizeOf(draw.UniformSize(2, 1)), draw.ErrBadSize},
		{"lognormal sizes with least above most", sizeOf(draw.LognormalSize(2, 1, 3, 1)), draw.ErrBadSize},
		{"a median below the bounds", sizeOf(draw.LognormalSize(9, 1, 10, 20)), draw.ErrBadSize},
		{"a median above the bounds", sizeOf(draw.LognormalSize(21, 1, 10, 20)), draw.ErrBadSize},
		{"a median of zero", sizeOf(draw.LognormalSize(0, 1, 0, 20)), draw.ErrBadSize},
		{"a median that is no number", sizeOf(draw.LognormalSize(math.NaN(), 1, 0, 20)), draw.ErrBadSize},
		{"no sigma", sizeOf(draw.LognormalSize(10, 0, 0, 20)), draw.ErrBadSize},
		{"a sigma that is no number", sizeOf(draw.LognormalSize(10, math.NaN(), 0, 20)), draw.ErrBadSize},
		{"an infinite sigma", sizeOf(draw.LognormalSize(10, math.Inf(1), 0, 20)), draw.ErrBadSize},
		{"an empty list", sizeOf(draw.WeightedSize(nil)), draw.ErrBadSize},
		{"a list without end", sizeOf(draw.WeightedSize(make([]draw.Weight, draw.MaxWeights+1))), draw.ErrBadSize},
		{"a weight of zero", sizeOf(draw.WeightedSize([]draw.Weight{one, {2, 0}})), draw.ErrBadSize},
		{"a negative size in a list", sizeOf(draw.WeightedSize([]draw.Weight{one, {-2, 1}})), draw.ErrBadSize},
		{"weights beyond floats", sizeOf(draw.WeightedSize([]draw.Weight{{1, 1e308}, {2, 1e308}})), draw.ErrBadSize},
		{"no keys", keysOf(draw.UniformKeys(0)), draw.ErrBadKeys},
		{"too many keys", keysOf(draw.UniformKeys(draw.MaxKeys + 1)), draw.ErrBadKeys},
		{"no keys of Zipf's", keysOf(draw.ZipfKeys(1, 0)), draw.ErrBadKeys},
		{"no exponent", keysOf(draw.ZipfKeys(0, 10)), draw.ErrBadKeys},
		{"an exponent above the bound", keysOf(draw.ZipfKeys(10.1, 10)), draw.ErrBadKeys},
		{"an exponent that is no number", keysOf(draw.ZipfKeys(math.NaN(), 10)), draw.ErrBadKeys},
		{"no share", keysOf(ten.WithHot(0)), draw.ErrBadKeys},
		{"a share above one", keysOf(ten.WithHot(1.1)), draw.ErrBadKeys},
		{"a share that is no number", keysOf(ten.WithHot(math.NaN())), draw.ErrBadKeys},
		{"two hot keys", keysOf(hot(0.1, ten).WithHot(0.1)), draw.ErrBadKeys},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if !errors.Is(row.err, row.want) {
				t.Errorf("error %v, want %v", row.err, row.want)
			}
		})
	}
}

func BenchmarkBytes(b *testing.B) {
	for _, row := range []struct {
		name string
		size draw.Size
	}{
		{"fixed", size(draw.FixedSize(512))},
		{"uniform", size(draw.UniformSize(480, 4096))},
		{"lognormal", size(draw.LognormalSize(600, 1, 480, 1<<20))},
		{"weighted", size(draw.WeightedSize([]draw.Weight{{512, 90}, {4096, 9}, {65536, 1}}))},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for seq := int64(0); b.Loop(); seq++ {
				row.size.Bytes(1, seq)
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	for _, row := range []struct {
		name string
		keys draw.Keys
	}{
		{"uniform", keys(draw.UniformKeys(1000))},
		{"zipf", keys(draw.ZipfKeys(1.1, 1_000_000))},
		{"hot", hot(0.2, keys(draw.UniformKeys(1000)))},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for seq := int64(0); b.Loop(); seq++ {
				row.keys.Index(1, seq)
			}
		})
	}
}
