package experiment

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"

	"spillway/internal/result"
)

// Names of the runtime's histograms, which count since the process started (runtime/metrics, Go 1.26).
const (
	pauses   = "/sched/pauses/total/gc:seconds" // stop-the-world pauses for garbage collection
	waitings = "/sched/latencies:seconds"       // of goroutines that could run, until they did
)

// totals is one look at what this process took from the machine and how long it waited for it, since it began.
type totals struct {
	cpu     time.Duration // user and system time
	pauses  metrics.Float64Histogram
	waits   metrics.Float64Histogram
	threads waited
	machine cpuTimes
}

// waited is how long the threads of this process could run and did not, because others had the processors, and how often
// they ran.
type waited struct {
	time  time.Duration
	runs  int64
	known bool
}

func readTotals() totals {
	samples := []metrics.Sample{{Name: pauses}, {Name: waitings}}
	metrics.Read(samples)
	return totals{
		cpu: cpuTime(), pauses: histogramOf(samples[0]), waits: histogramOf(samples[1]), threads: threadsWaited(), machine: readCPU(),
	}
}

// cpuTime returns this process's processor time so far; 0 when the system does not say.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// histogramOf copies a histogram out of a sample; it is empty where the runtime has none of the name.
func histogramOf(s metrics.Sample) metrics.Float64Histogram {
	if s.Value.Kind() != metrics.KindFloat64Histogram {
		return metrics.Float64Histogram{}
	}
	h := s.Value.Float64Histogram()
	return metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: slices.Clone(h.Buckets)}
}

// strain is how this process fared over the measured load: what it took, and what it waited for. It is what self-distrust
// looks at beside the generator's lag.
type strain struct {
	span        time.Duration
	cpus, procs int           // of the machine; that run Go code at once
	cpu         time.Duration // of this process, all threads
	pauses      uint64        // stop-the-world pauses for garbage collection
	pauseP99    time.Duration
	pauseMax    time.Duration
	waitP99     time.Duration // of goroutines for a processor of the runtime's
	threads     *threadWait   // nil when unknown
	steal       *float64      // of the machine's processor time: that the hypervisor took; nil when unknown
}

// since returns the strain between two readings.
func (t *totals) since(before *totals, span time.Duration) strain {
	gone, waits := difference(&t.pauses, &before.pauses), difference(&t.waits, &before.waits)
	return strain{
		span: span, cpus: runtime.NumCPU(), procs: runtime.GOMAXPROCS(0), cpu: t.cpu - before.cpu,
		pauses: samples(&gone), pauseP99: quantile(&gone, 0.99), pauseMax: quantile(&gone, 1), waitP99: quantile(&waits, 0.99),
		threads: t.threads.since(before.threads), steal: t.machine.stolenSince(before.machine),
	}
}

// threadWait is how long the threads of this process waited for a processor, between two readings.
type threadWait struct {
	total time.Duration // over all threads
	mean  time.Duration // before each time that one ran
}

// since returns nil where a reading is unknown or no thread ran. A thread that ended takes what it waited out of the sums.
func (w waited) since(before waited) *threadWait {
	total, runs := w.time-before.time, w.runs-before.runs
	if !w.known || !before.known || total < 0 || runs <= 0 {
		return nil
	}
	return &threadWait{total: total, mean: total / time.Duration(runs)}
}

// ofMachine and ofRuntime are the process's share of the machine's processors and of those that it may run Go code on.
func (s *strain) ofMachine() float64 { return s.cpu.Seconds() / (s.span.Seconds() * float64(s.cpus)) }
func (s *strain) ofRuntime() float64 {
	return s.cpu.Seconds() / (s.span.Seconds() * float64(s.procs))
}

// report writes the strain into the result.
func (s *strain) report(p *result.Process) {
	p.GOMAXPROCS = s.procs
	p.CPUShareOfMachine, p.CPUShareOfGOMAXPROCS = result.Number(s.ofMachine()), result.Number(s.ofRuntime())
	p.GCPauseP99Seconds, p.GCPauseLoadMaxSeconds = result.Seconds(s.pauseP99), result.Seconds(s.pauseMax)
	p.GoroutineWaitP99Seconds, p.StealRatio = result.Seconds(s.waitP99), s.steal
	if w := s.threads; w != nil {
		p.ThreadWaitMeanSeconds, p.ThreadWaitRatio = result.Seconds(w.mean), result.Number(w.total.Seconds()/s.span.Seconds())
	}
}

// difference returns what a histogram counted between two readings of it.
func difference(now, before *metrics.Float64Histogram) metrics.Float64Histogram {
	out := metrics.Float64Histogram{Buckets: now.Buckets, Counts: slices.Clone(now.Counts)}
	for i := range min(len(out.Counts), len(before.Counts)) {
		out.Counts[i] -= before.Counts[i]
	}
	return out
}

// quantile returns the upper edge of the bucket that holds the q-th value by nearest rank, so at most a quarter above it; 0 of
// an empty histogram. The last bucket has no upper edge, and stands for twice its lower one.
func quantile(h *metrics.Float64Histogram, q float64) time.Duration {
	all := samples(h)
	rank, seen := max(1, uint64(math.Ceil(float64(all)*q))), uint64(0)
	for i, n := range h.Counts {
		if seen += n; n > 0 && seen >= min(rank, all) {
			return time.Duration(upperEdge(h.Buckets[i], h.Buckets[i+1]) * float64(time.Second))
		}
	}
	return 0
}

// samples returns how many values a histogram holds.
func samples(h *metrics.Float64Histogram) (all uint64) {
	for _, n := range h.Counts {
		all += n
	}
	return all
}

func upperEdge(lower, upper float64) float64 {
	if math.IsInf(upper, 1) {
		return 2 * lower
	}
	return upper
}
