package experiment

import (
	"math"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// atTheBounds is a strain on two processors, of a process that could run Go code on both, with every figure at its bound.
func atTheBounds() strain {
	steal := maxSteal
	return strain{
		span: 10 * time.Second, cpus: 2, procs: 2, cpu: 16 * time.Second, pauses: minPauses, pauseP99: maxPauseP99, pauseMax: maxPause,
		waitP99: maxGoroutineWait, threads: &threadWait{total: time.Hour, mean: maxThreadWait}, steal: &steal,
	}
}

func TestStrainIsJudgedAgainstEachBound(t *testing.T) {
	t.Parallel()
	const little = 1 + 1e-6
	share := func(x float64) *float64 { return &x }
	for name, row := range map[string]struct {
		change       func(*strain)
		open, closed []string // codes
	}{
		"figures at their bounds are trusted":            {func(*strain) {}, nil, nil},
		"more than the bound of all processors":          {func(s *strain) { s.cpu += time.Millisecond }, []string{"own-cpu"}, nil},
		"less than the bound of more processors":         {func(s *strain) { s.cpus, s.procs, s.cpu = 4, 4, 31*time.Second }, nil, nil},
		"all of the few that Go may use":                 {func(s *strain) { s.cpus, s.procs, s.cpu = 64, 2, 17*time.Second }, []string{"own-cpu"}, nil},
		"all of the machine's, with more threads for Go": {func(s *strain) { s.cpus, s.procs, s.cpu = 2, 64, 17*time.Second }, []string{"own-cpu"}, nil},
		"pauses that are longer as a rule":               {func(s *strain) { s.pauseP99++ }, []string{"gc-pauses"}, []string{"gc-pauses"}},
		"the longest of few pauses, which is their p99":  {func(s *strain) { s.pauses, s.pauseP99 = minPauses-1, maxPauseP99+1 }, nil, nil},
		"one pause of many that is very long":            {func(s *strain) { s.pauseP99, s.pauseMax = time.Millisecond, maxPause+1 }, []string{"gc-pauses"}, []string{"gc-pauses"}},
		"goroutines that wait longer":                    {func(s *strain) { s.waitP99++ }, []string{"goroutines-waited"}, nil},
		"threads that wait longer":                       {func(s *strain) { s.threads.mean++ }, []string{"threads-waited"}, nil},
		"threads of which nothing is known":              {func(s *strain) { s.threads = nil }, nil, nil},
		"a hypervisor that takes more":                   {func(s *strain) { s.steal = share(maxSteal * little) }, []string{"stolen-cpu"}, []string{"stolen-cpu"}},
		"a hypervisor of which nothing is known":         {func(s *strain) { s.steal = nil }, nil, nil},
		"everything at once is named each by itself": {func(s *strain) {
			*s = strain{span: time.Second, cpus: 2, procs: 2, cpu: 2 * time.Second, pauseP99: time.Second, pauseMax: time.Second,
				waitP99: time.Second, threads: &threadWait{mean: time.Second}, steal: share(0.5)}
		}, []string{"own-cpu", "goroutines-waited", "threads-waited", "gc-pauses", "stolen-cpu"}, []string{"gc-pauses", "stolen-cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := atTheBounds()
			row.change(&s)
			if got := codes(s.reasons(false)); !slices.Equal(got, row.open) {
				t.Errorf("an open load is distrusted for %v, want %v", got, row.open)
			}
			if got := codes(s.reasons(true)); !slices.Equal(got, row.closed) {
				t.Errorf("a closed load is distrusted for %v, want %v", got, row.closed)
			}
		})
	}
}

func codes(of []reason) (out []string) {
	for _, r := range of {
		out = append(out, r.code)
	}
	return out
}

func TestAReasonNamesFigureAndBound(t *testing.T) {
	t.Parallel()
	s := atTheBounds()
	s.cpu = 19 * time.Second
	want := "this process took 95 % of the machine's 2 processors and 95 % of the 2 that it runs Go code on (bound 80 % of either): " +
		"its own work was the bottleneck; give it more processors or a lower rate"
	if got := s.reasons(false); len(got) != 1 || got[0].message != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// histogram of four buckets: below 1 s, to 2 s, to 4 s, and beyond.
func histogram(counts ...uint64) *metrics.Float64Histogram {
	return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{math.Inf(-1), 1, 2, 4, math.Inf(1)}}
}

func TestQuantilesAreUpperEdgesOfWhatWasCountedBetweenTwoReadings(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before, now *metrics.Float64Histogram
		q           float64
		want        time.Duration
	}{
		"nothing was counted":                      {histogram(5, 5, 5, 5), histogram(5, 5, 5, 5), 0.99, 0},
		"what was there before does not count":     {histogram(0, 0, 900, 0), histogram(100, 0, 900, 0), 0.99, time.Second},
		"one in a hundred is above the p99":        {histogram(0, 0, 0, 0), histogram(0, 99, 1, 0), 0.99, 2 * time.Second},
		"two in a hundred are not":                 {histogram(0, 0, 0, 0), histogram(0, 98, 2, 0), 0.99, 4 * time.Second},
		"of one value every quantile is it":        {histogram(0, 0, 0, 0), histogram(0, 0, 1, 0), 0.01, 4 * time.Second},
		"the largest is in the last bucket":        {histogram(0, 0, 0, 0), histogram(900, 0, 0, 1), 1, 8 * time.Second},
		"a runtime without such a histogram is 0":  {&metrics.Float64Histogram{}, &metrics.Float64Histogram{}, 0.99, 0},
		"a first reading that had none is no loss": {&metrics.Float64Histogram{}, histogram(0, 7, 0, 0), 0.5, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone := difference(row.now, row.before)
			if got := quantile(&gone, row.q); got != row.want {
				t.Errorf("the quantile is %v, want %v", got, row.want)
			}
		})
	}
}

func TestTheWaitOfThreadsIsTheMeanBeforeARun(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		now, before waited
		want        *threadWait
	}{
		"no wait":                  {waited{5, 9, true}, waited{5, 7, true}, &threadWait{0, 0}},
		"three runs after a wait":  {waited{605, 10, true}, waited{5, 7, true}, &threadWait{600, 200}},
		"a thread that ended":      {waited{3, 4, true}, waited{5, 7, true}, nil},
		"nothing ran":              {waited{5, 7, true}, waited{5, 7, true}, nil},
		"a first reading unknown":  {waited{5, 7, true}, waited{}, nil},
		"a second reading unknown": {waited{}, waited{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := row.now.since(row.before)
			if (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
				t.Errorf("waited %+v, want %+v", got, row.want)
			}
		})
	}
}

// TestTheStrainOfThisVeryProcessIsRead burns processor time in a known amount and looks for it in the readings.
func TestTheStrainOfThisVeryProcessIsRead(t *testing.T) {
	t.Parallel()
	const burnt = 50 * time.Millisecond
	before, began := readTotals(), time.Now()
	x := 0
	for cpuTime() < before.cpu+burnt {
		x++
	}
	now := readTotals()
	s := now.since(&before, time.Since(began))
	if x == 0 || s.cpu < burnt || s.ofMachine() <= 0 || s.ofMachine() > 1.01 || s.ofRuntime() <= 0 {
		t.Errorf("%+v: share of the machine %v, of the runtime %v", s, s.ofMachine(), s.ofRuntime())
	}
	if len(now.waits.Counts) == 0 || len(now.pauses.Counts) == 0 {
		t.Error("the runtime has no histogram of the names that are asked for")
	}
}
