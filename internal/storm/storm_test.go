package storm_test

import (
	"math"
	"testing"
	"time"

	"spillway/internal/storm"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// path makes series by hand. Bins are 100 ms wide; load of 100/s is offered from 0 to loadEnd and handled at once, unless
// a test says otherwise.
type path struct {
	series storm.Series
	window storm.Window
}

// newPath has a fault from 10 s to 15 s, load up to 40 s, and was watched up to 50 s.
func newPath() *path {
	p := &path{
		series: storm.Series{Width: 100 * ms},
		window: storm.Window{Start: 10 * sec, End: 15 * sec, LoadStart: 0, LoadEnd: 40 * sec, RunEnd: 50 * sec},
	}
	p.series.Arrivals = fill(nil, 0, 400, 10)
	p.series.Goodput = fill(nil, 0, 40, 100)
	return p.level(0, 50*sec, 20*ms, 0)
}

// fill sets bins[from:until] to n.
func fill(bins []int, from, until, n int) []int {
	for len(bins) < until {
		bins = append(bins, 0)
	}
	for i := from; i < until; i++ {
		bins[i] = n
	}
	return bins
}

// level gives the samples in [from, until), ten a second, an age and a debt.
func (p *path) level(from, until, age time.Duration, debt int) *path {
	for at := from; at < until; at += 100 * ms {
		s := storm.Sample{At: at, Age: age, Debt: debt}
		if i := int(at / (100 * ms)); i < len(p.series.Samples) {
			p.series.Samples[i] = s
		} else {
			p.series.Samples = append(p.series.Samples, s)
		}
	}
	return p
}

func (p *path) analyse() storm.Storm { return storm.Analyse(p.series, p.window) }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestAStormIsMeasured(t *testing.T) {
	t.Parallel()
	p := newPath()
	// During the fault messages go to tiers; from 15 s to 17 s they come back: 19 bins of 5 and a peak of 40.
	p.level(10*sec, 17*sec, 6*sec, 300)
	p.series.Returns = fill(p.series.Returns, 150, 170, 5)
	p.series.Returns[160] = 40
	p.series.Samples[165].Debt = 450
	p.series.Goodput = fill(p.series.Goodput, 10, 15, 0)
	p.series.Goodput[16] = 120 // the most in one second: the calibrated capacity
	got := p.analyse()
	want := storm.Storm{
		BaselinePerSecond: 100, CapacityPerSecond: 120, PeakReturnsPerSecond: 400, PeakRatio: 4,
		Synchronisation: 40 / (float64(19*5+40) / 20), DebtMax: 450,
		AreaMessages: 19*(5+10-12) + (40 + 10 - 12), Recovery: 2 * sec, Outcome: storm.Recovered,
	}
	if got.BaselinePerSecond != want.BaselinePerSecond || got.CapacityPerSecond != want.CapacityPerSecond ||
		!near(got.PeakReturnsPerSecond, want.PeakReturnsPerSecond) || !near(got.PeakRatio, want.PeakRatio) ||
		!near(got.Synchronisation, want.Synchronisation) || got.DebtMax != want.DebtMax ||
		!near(got.AreaMessages, want.AreaMessages) || got.Recovery != want.Recovery || got.Outcome != want.Outcome {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change   func(*path)
		outcome  storm.Outcome
		recovery time.Duration
	}{
		"nothing is felt": {func(*path) {}, storm.Stable, 0},
		"an age at its floor is within bounds": {func(p *path) {
			p.level(10*sec, 20*sec, 250*ms, 0)
		}, storm.Stable, 0},
		"an age above its floor is not": {func(p *path) {
			p.level(10*sec, 20*sec, 251*ms, 0)
		}, storm.Recovered, 5 * sec},
		"the bound is three times the p99 before the fault, where that is more": {func(p *path) {
			p.level(0, 10*sec, 200*ms, 0).level(10*sec, 20*sec, 600*ms, 0)
		}, storm.Stable, 0},
		"and no more than three times": {func(p *path) {
			p.level(0, 10*sec, 200*ms, 0).level(10*sec, 20*sec, 601*ms, 0)
		}, storm.Recovered, 5 * sec},
		"one old sample in a hundred is above the p99 and raises no bound": {func(p *path) {
			p.level(0, 100*ms, 10*sec, 0).level(10*sec, 20*sec, 251*ms, 0)
		}, storm.Recovered, 5 * sec},
		"two in a hundred are the p99": {func(p *path) {
			p.level(0, 200*ms, 200*ms, 0).level(10*sec, 20*sec, 600*ms, 0)
		}, storm.Stable, 0},
		"among few samples the p99 is the oldest": {func(p *path) {
			p.window.LoadStart = 9 * sec
			p.level(9300*ms, 9400*ms, 200*ms, 0).level(10*sec, 20*sec, 600*ms, 0)
		}, storm.Stable, 0},
		"what was before the load does not count": {func(p *path) {
			p.window.LoadStart = 9 * sec
			p.level(0, 9*sec, 10*sec, 99).level(10*sec, 20*sec, 251*ms, 1)
		}, storm.Recovered, 5 * sec},
		"a debt like the one before the fault is within bounds": {func(p *path) {
			p.level(2*sec, 3*sec, 20*ms, 7).level(10*sec, 20*sec, 20*ms, 7)
		}, storm.Stable, 0},
		"a debt above it is not": {func(p *path) {
			p.level(2*sec, 3*sec, 20*ms, 7).level(10*sec, 20*sec, 20*ms, 8)
		}, storm.Recovered, 5 * sec},
		"out of bounds during the fault alone is recovered at once": {func(p *path) {
			p.level(10*sec, 15*sec, sec, 5)
		}, storm.Recovered, 0},
		"out of bounds after the fault alone is recovered too": {func(p *path) {
			p.level(16*sec, 18*sec, sec, 0)
		}, storm.Recovered, 3 * sec},
		"bounds held for less than 5 s are no recovery": {func(p *path) {
			p.level(10*sec, 20*sec, sec, 0).level(25*sec, 25100*ms, sec, 0)
		}, storm.Recovered, 10100 * ms},
		"bounds left after 5 s are another story": {func(p *path) {
			p.level(10*sec, 20*sec, sec, 0).level(25100*ms, 26*sec, sec, 0)
		}, storm.Recovered, 5 * sec},
		"never back, with goodput gone: metastable": {func(p *path) {
			p.level(10*sec, 50*sec, sec, 90)
			p.series.Goodput = fill(p.series.Goodput, 10, 40, 89)
		}, storm.Metastable, 0},
		"never back, but goodput is at nine tenths: undecided": {func(p *path) {
			p.level(10*sec, 50*sec, sec, 90)
			p.series.Goodput = fill(p.series.Goodput, 10, 40, 90)
		}, storm.Undecided, 0},
		"never back, and the load ended within three times the fault: undecided": {func(p *path) {
			p.level(10*sec, 50*sec, sec, 90)
			p.series.Goodput = fill(p.series.Goodput, 10, 40, 0)
			p.window.LoadEnd = 30*sec - 1
		}, storm.Undecided, 0},
		"load for exactly three times the fault decides": {func(p *path) {
			p.level(10*sec, 50*sec, sec, 90)
			p.series.Goodput = fill(p.series.Goodput, 10, 40, 0)
			p.window.LoadEnd = 30 * sec
		}, storm.Metastable, 0},
		"the goodput that counts is that of the load's last whole second": {func(p *path) {
			p.level(10*sec, 50*sec, sec, 90)
			p.series.Goodput = fill(p.series.Goodput, 10, 40, 0)
			p.series.Goodput[38] = 100
			p.window.LoadEnd = 39*sec + 500*ms
		}, storm.Undecided, 0},
		"back 5 s before the end of the run: held long enough": {func(p *path) {
			p.level(10*sec, 45*sec, sec, 0)
		}, storm.Recovered, 30 * sec},
		"back 4 s before the end of the run: not held long enough": {func(p *path) {
			p.level(10*sec, 46*sec, sec, 0)
		}, storm.Undecided, 0},
		"back 4 s before the end of a run that was drained: holds for ever": {func(p *path) {
			p.level(10*sec, 46*sec, sec, 0)
			p.window.Drained = true
		}, storm.Recovered, 31 * sec},
		"out of bounds at the end, drained or not": {func(p *path) {
			p.level(10*sec, 50*sec, sec, 0)
			p.window.Drained = true
		}, storm.Undecided, 0},
		"the run ends with the fault": {func(p *path) {
			p.window.RunEnd, p.window.LoadEnd = 15*sec, 12*sec
		}, storm.Undecided, 0},
		"the run ends with the fault and is drained": {func(p *path) {
			p.window.RunEnd, p.window.LoadEnd, p.window.Drained = 15*sec, 12*sec, true
		}, storm.Stable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPath()
			row.change(p)
			got := p.analyse()
			if got.Outcome != row.outcome || got.Recovery != row.recovery {
				t.Errorf("%s after %v, want %s after %v", got.Outcome, got.Recovery, row.outcome, row.recovery)
			}
		})
	}
}

func TestOnlyWhatComesBackUntilTheRecoveryCounts(t *testing.T) {
	t.Parallel()
	p := newPath()
	p.level(10*sec, 17*sec, sec, 30)
	p.level(30*sec, 31*sec, 20*ms, 0)
	p.series.Samples[320].Debt = 999 // an accident of its own, after the recovery
	p.series.Returns = fill(p.series.Returns, 90, 100, 70)
	p.series.Returns = fill(p.series.Returns, 160, 162, 20)
	p.series.Returns = fill(p.series.Returns, 300, 310, 80)
	got := p.analyse()
	if !near(got.PeakReturnsPerSecond, 200) || got.DebtMax != 30 || !near(got.AreaMessages, 40) || !near(got.Synchronisation, 1) {
		t.Errorf("peak %v, debt %d, area %v, synchronisation %v; want 200, 30, 40, 1",
			got.PeakReturnsPerSecond, got.DebtMax, got.AreaMessages, got.Synchronisation)
	}
}

func TestWithoutARecoveryTheWholeRestCounts(t *testing.T) {
	t.Parallel()
	p := newPath()
	p.level(10*sec, 50*sec, sec, 30)
	p.series.Returns = fill(p.series.Returns, 450, 451, 50)
	got := p.analyse()
	if !near(got.PeakReturnsPerSecond, 500) || got.DebtMax != 30 || got.Recovery != 0 || !near(got.AreaMessages, 40) {
		t.Errorf("got %+v, want a peak of 500, debt 30, an area of 40, no recovery", got)
	}
}

func TestABinBelowCapacityAddsNoArea(t *testing.T) {
	t.Parallel()
	p := newPath()
	p.level(10*sec, 16*sec, sec, 0)
	p.series.Goodput[3] = 200 // capacity 20 a bin
	p.series.Returns = fill(p.series.Returns, 152, 158, 10)
	p.series.Returns[155] = 11
	if got := p.analyse(); !near(got.AreaMessages, 1) {
		t.Errorf("an area of %v, want 1: five bins at capacity, one above it by 1", got.AreaMessages)
	}
}

func TestSynchronisation(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		returns map[int]int
		want    float64
	}{
		"no returns":                         {nil, 0},
		"all in one bin":                     {map[int]int{155: 9}, 1},
		"an even flow":                       {map[int]int{155: 9, 156: 9, 157: 9}, 1},
		"two bursts far apart":               {map[int]int{150: 10, 159: 10}, 5},
		"bins before the first do not count": {map[int]int{157: 6, 158: 2}, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPath()
			p.level(10*sec, 17*sec, sec, 0)
			for bin, n := range row.returns {
				p.series.Returns = fill(p.series.Returns, len(p.series.Returns), bin+1, 0)
				p.series.Returns[bin] = n
			}
			if got := p.analyse(); !near(got.Synchronisation, row.want) {
				t.Errorf("got %v, want %v", got.Synchronisation, row.want)
			}
		})
	}
}

func TestTheBaseline(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*path)
		want   float64
	}{
		"the last ten seconds before the fault": {func(p *path) {
			p.window.Start, p.window.End = 20*sec, 25*sec
			p.series.Arrivals = fill(p.series.Arrivals, 0, 100, 99)
		}, 100},
		"not the fault itself": {func(p *path) { p.series.Arrivals = fill(p.series.Arrivals, 100, 200, 0) }, 100},
		"from the load's start where that is later": {func(p *path) {
			p.series.Arrivals = fill(p.series.Arrivals, 0, 50, 0)
			p.window.LoadStart = 5 * sec
		}, 100},
		"a start within a bin does not thin the rate": {func(p *path) {
			p.window.LoadStart = 5*sec + 50*ms
			p.series.Arrivals = fill(p.series.Arrivals, 0, 50, 0)
			p.window.Start = 5*sec + 300*ms
		}, 100},
		"an end within a bin does not swell it": {func(p *path) {
			p.window.LoadStart, p.window.Start = 9500*ms, 9750*ms
			p.series.Arrivals[97] = 1000
		}, 100},
		"a quiet stretch counts as such":               {func(p *path) { p.series.Arrivals = fill(nil, 0, 50, 10) }, 50},
		"a fault at the load's start has none":         {func(p *path) { p.window.LoadStart = 10 * sec }, 0},
		"a fault within the load's first bin has none": {func(p *path) { p.window.LoadStart = 10*sec - 50*ms }, 0},
		"a fault before the load has none":             {func(p *path) { p.window.LoadStart = 12 * sec }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPath()
			row.change(p)
			if got := p.analyse(); !near(got.BaselinePerSecond, row.want) {
				t.Errorf("got %v, want %v", got.BaselinePerSecond, row.want)
			}
		})
	}
}

func TestWithoutABaselineNothingIsDividedByIt(t *testing.T) {
	t.Parallel()
	p := newPath()
	p.window.LoadStart = 10 * sec
	p.level(10*sec, 50*sec, sec, 3)
	p.series.Goodput = fill(nil, 0, 40, 0)
	p.series.Returns = fill(nil, 150, 151, 5)
	got := p.analyse()
	if got.PeakRatio != 0 || got.Outcome != storm.Undecided || got.CapacityPerSecond != 0 {
		t.Errorf("got %+v, want no ratio, no capacity, undecided", got)
	}
}

func TestAnEmptySeriesIsNoStorm(t *testing.T) {
	t.Parallel()
	w := storm.Window{Start: sec, End: 2 * sec, LoadEnd: 3 * sec, RunEnd: 3 * sec}
	got := storm.Analyse(storm.Series{Width: 100 * ms}, w)
	if got != (storm.Storm{Outcome: storm.Undecided}) {
		t.Errorf("got %+v", got)
	}
}

func TestTheCapacityIsAtLeastTheBaseline(t *testing.T) {
	t.Parallel()
	p := newPath()
	p.series.Goodput = fill(nil, 0, 40, 60)
	if got := p.analyse(); got.CapacityPerSecond != 100 {
		t.Errorf("a capacity of %v below the baseline that was carried, 100", got.CapacityPerSecond)
	}
}

func TestBinWidth(t *testing.T) {
	t.Parallel()
	for shortest, want := range map[time.Duration]time.Duration{
		5 * sec: sec, 10 * sec: sec, sec: 200 * ms, 50 * ms: 10 * ms, 5 * ms: ms, ms: ms, 1: ms, 0: sec, -sec: sec,
	} {
		if got := storm.BinWidth(shortest); got != want {
			t.Errorf("a shortest delay of %v has bins of %v, want %v", shortest, got, want)
		}
	}
}
