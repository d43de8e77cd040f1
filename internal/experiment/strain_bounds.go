package experiment

import (
	"fmt"
	"math"
	"time"
)

// Bounds of self-distrust on what this process took and waited for, beside those of the generator's lag in judge.go. They mark
// a measurement that cannot be trusted, not a busy machine: on two processors shared with broker, database and other work (load
// average 1 to 7), runs stayed at the figures in brackets.
const (
	// maxOwnCPU is of the processors of the machine, and of those that Go may use. Two servers that are busy 80 % of the time
	// let work wait 1.8 times as long as it takes (M/M/2: ρ²/(1-ρ²)), so latencies are those of this process from there on.
	// (0.03 to 0.27)
	maxOwnCPU = 0.80
	// maxPauseP99 and maxPause are of stop-the-world pauses for garbage collection, in which nothing is sent, read or timed:
	// every latency under way is longer by the pause. Two bounds, since of few pauses the p99 is the longest: it is held to its
	// bound from minPauses on. (0.2 to 17 ms; up to 84 ms, of some ten pauses, at a load average of 15)
	maxPauseP99 = 100 * time.Millisecond
	minPauses   = 100
	maxPause    = 500 * time.Millisecond
	// maxGoroutineWait is at p99, of goroutines that could run: a confirm or a delivery passes through several, and what each
	// waits is measured as the broker's. (0.1 to 0.9 ms; 25 ms in a run that the database could not follow)
	maxGoroutineWait = 100 * time.Millisecond
	// maxThreadWait is the mean over all times that a thread of this process had something to do. It is more than the time slice
	// that the kernel gives (3 ms), so each of the half dozen wake-ups of a message waited behind others' whole slices. It is
	// not the share of time spent waiting that is judged: threads that run for some microseconds at a time wait for longer
	// than they run on any shared machine. (18 to 71 µs; 174 µs in the same run)
	maxThreadWait = 5 * time.Millisecond
	// maxSteal is of the machine's processor time. A tenth is more than the differences that runs are compared for. (below 0.001)
	maxSteal = 0.10
)

// reason is why a measurement is not to be trusted: the code and the text of a finding.
type reason struct{ code, message string }

// reasons holds the strain against the bounds. A closed load is meant to fill the processors, so what it took and how long it
// waited for them says nothing against it; being stopped does.
func (s *strain) reasons(closed bool) []reason {
	var found []reason
	add := func(over bool, code, format string, args ...any) {
		if over {
			found = append(found, reason{code, fmt.Sprintf(format, args...)})
		}
	}
	if !closed {
		s.addStarvation(add)
	}
	often := s.pauses >= minPauses && s.pauseP99 > maxPauseP99
	add(often || s.pauseMax > maxPause, "gc-pauses", "garbage collection stopped the whole process for %v at p99 "+
		"(bound %v), %v at most (bound %v): every latency under way was longer by that", s.pauseP99, maxPauseP99, s.pauseMax, maxPause)
	add(above(s.steal, maxSteal), "stolen-cpu", "the hypervisor took %s of the machine's processor time (bound %s): its neighbours were "+
		"measured too", percent(s.steal), percentOf(maxSteal))
	return found
}

func (s *strain) addStarvation(add func(over bool, code, format string, args ...any)) {
	machine, procs := s.ofMachine(), s.ofRuntime()
	add(max(machine, procs) > maxOwnCPU, "own-cpu", "this process took %s of the machine's %d processors and %s of the %d that it runs Go "+
		"code on (bound %s of either): its own work was the bottleneck; give it more processors or a lower rate",
		percentOf(machine), s.cpus, percentOf(procs), s.procs, percentOf(maxOwnCPU))
	add(s.waitP99 > maxGoroutineWait, "goroutines-waited", "goroutines that could run waited %v for a processor at p99 (bound %v): latencies "+
		"hold this process's own queue", s.waitP99, maxGoroutineWait)
	add(s.threads != nil && s.threads.mean > maxThreadWait, "threads-waited", "this process's threads waited %v for a processor each time "+
		"that they had something to do, on average (bound %v): the machine was measured, and not the servers", s.waitMean(), maxThreadWait)
}

func (s *strain) waitMean() time.Duration {
	if s.threads == nil {
		return 0
	}
	return s.threads.mean
}

// above reports whether a figure is known, and above its bound.
func above(x *float64, bound float64) bool { return x != nil && *x > bound }

func percent(x *float64) string {
	if x == nil {
		return "an unknown share"
	}
	return percentOf(*x)
}

// percentOf rounds to a tenth of a per cent.
func percentOf(x float64) string { return fmt.Sprintf("%v %%", math.Round(x*1000)/10) }
