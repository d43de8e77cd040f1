// Package storm measures what a fault does to the retry traffic: how many messages come back, how much at once, how long
// until the path is as it was. A Recorder collects while a run goes on; Analyse is pure.
//
// A return is counted when its tier lets it go (confirm in the tier + its TTL), not when a worker gets to it: that is
// the demand, which is what a storm is made of; what the workers get through is the goodput beside it.
package storm

import (
	"slices"
	"time"
)

// Outcome says how a fault window ended for the path under test.
type Outcome string

// Outcomes.
const (
	// Stable: age and debt never left their bounds after the fault, and did not during it.
	Stable Outcome = "stable"
	// Recovered: they came back to their bounds and stayed there.
	Recovered Outcome = "recovered"
	// Metastable: the fault was gone, load was offered for at least three times its length more, and goodput was not back.
	Metastable Outcome = "metastable"
	// Undecided: not recovered, and the load ended too early to call it metastable.
	Undecided Outcome = "undecided"
)

// Bounds of the definition, see docs/measurement.md.
const (
	ageFactor    = 3                      // of the pre-fault p99 of the oldest age
	ageFloor     = 250 * time.Millisecond // the bound is never below this
	holdFor      = 5 * time.Second        // within bounds for this long is recovered
	loadFactor   = 3                      // of the fault's length: load offered this long after it decides metastable
	goodputBack  = 0.9                    // of the baseline: goodput at or above it counts as back
	baselineSpan = 10 * time.Second       // before the fault, for the arrival rate
)

// Window is a fault's time. LoadStart and LoadEnd bound the offered load; RunEnd is the last instant observed.
type Window struct {
	Start, End         time.Duration
	LoadStart, LoadEnd time.Duration
	RunEnd             time.Duration
	Drained            bool // nothing was left unsettled at RunEnd: bounds that hold then hold for ever
}

// Storm is the measure of one fault window.
type Storm struct {
	BaselinePerSecond    float64 // arrivals per second before the fault
	CapacityPerSecond    float64 // calibrated: the most first-time effects in one second of the run, at least the baseline
	PeakReturnsPerSecond float64 // in one bin
	PeakRatio            float64 // to the baseline; 0 without one
	Synchronisation      float64 // peak bin / mean bin, from the first to the last return; 0 without returns
	DebtMax              int     // messages in tiers, at most
	AreaMessages         float64 // sum over bins of (fresh + returning - capacity) where positive
	Recovery             time.Duration
	Outcome              Outcome
}

// Series is what a Recorder collected: bins of equal width from offset 0 on, and samples in order of time.
type Series struct {
	Width    time.Duration
	Arrivals []int // due
	Returns  []int // let go by their tier
	Goodput  []int // first-time effects, in whole seconds
	Samples  []Sample
}

// Sample is the state of the path at an instant.
type Sample struct {
	At   time.Duration
	Age  time.Duration // oldest unsettled
	Debt int
}

// Analyse measures one window.
func Analyse(s Series, w Window) Storm {
	out := Storm{BaselinePerSecond: s.baseline(w)}
	out.CapacityPerSecond = max(out.BaselinePerSecond, float64(slices.Max(append([]int{0}, s.Goodput...))))
	ends := s.recovered(w)
	out.Recovery = max(0, ends.at-w.End)
	out.Outcome = s.outcome(w, ends, out.BaselinePerSecond)
	until := ends.at
	if !ends.found {
		until = w.RunEnd
	}
	s.returns(&out, w.Start, until)
	for _, sample := range s.between(w.Start, until) {
		out.DebtMax = max(out.DebtMax, sample.Debt)
	}
	return out
}

// baseline returns the arrivals per second before the fault, over the bins that lie wholly before it; 0 when there is
// none.
func (s Series) baseline(w Window) float64 {
	from := max(w.LoadStart, w.Start-baselineSpan)
	first, end := int((from+s.Width-1)/s.Width), int(w.Start/s.Width)
	if first >= end {
		return 0
	}
	arrivals := 0
	for i := first; i < end; i++ {
		arrivals += at(s.Arrivals, i)
	}
	return float64(arrivals) / (float64(end-first) * s.Width.Seconds())
}

// returns measures peak, synchronisation and area over a stretch.
func (s Series) returns(out *Storm, from, until time.Duration) {
	bins := s.bins(s.Returns, from, until)
	peak := slices.Max(append([]int{0}, bins...))
	out.PeakReturnsPerSecond = float64(peak) / s.Width.Seconds()
	if out.BaselinePerSecond > 0 {
		out.PeakRatio = out.PeakReturnsPerSecond / out.BaselinePerSecond
	}
	out.Synchronisation = synchronisation(bins, peak)
	capacity := out.CapacityPerSecond * s.Width.Seconds()
	fresh := s.bins(s.Arrivals, from, until)
	for i := range max(len(bins), len(fresh)) {
		out.AreaMessages += max(0, float64(at(bins, i)+at(fresh, i))-capacity)
	}
}

func synchronisation(bins []int, peak int) float64 {
	first := slices.IndexFunc(bins, func(n int) bool { return n > 0 })
	if first < 0 {
		return 0
	}
	last := first
	for i, n := range bins {
		if n > 0 {
			last = i
		}
	}
	return float64(peak) * float64(last-first+1) / float64(sum(bins))
}

// bounds are the levels that the path has to come back to.
type bounds struct {
	age  time.Duration
	debt int
}

func (b bounds) hold(s Sample) bool { return s.Age <= b.age && s.Debt <= b.debt }

// before returns the bounds from what was seen before the fault.
func (s Series) before(w Window) bounds {
	samples := s.between(w.LoadStart, w.Start)
	ages := make([]time.Duration, 0, len(samples))
	b := bounds{age: ageFloor}
	for _, sample := range samples {
		ages = append(ages, sample.Age)
		b.debt = max(b.debt, sample.Debt)
	}
	if len(ages) > 0 {
		slices.Sort(ages)
		b.age = max(ageFloor, ageFactor*ages[(len(ages)*99+99)/100-1]) // the nearest rank, as in the result's ages
	}
	return b
}

// recovery is when the path was back.
type recovery struct {
	at      time.Duration
	found   bool
	settled bool // the bounds were never left, from the fault's start on
}

// recovered finds the earliest instant from the fault's end on at which the bounds hold, and go on to hold long enough.
func (s Series) recovered(w Window) recovery {
	b := s.before(w)
	during := s.between(w.Start, w.End)
	settled := !slices.ContainsFunc(during, func(x Sample) bool { return !b.hold(x) })
	r := recovery{at: w.End, found: true, settled: settled}
	after := s.between(w.End, w.RunEnd+1)
	for _, sample := range after {
		switch {
		case !b.hold(sample):
			r = recovery{}
		case !r.found:
			r = recovery{at: sample.At, found: true}
		}
		if r.found && sample.At-r.at >= holdFor {
			return r
		}
	}
	if r.found && !w.Drained && w.RunEnd-r.at < holdFor {
		return recovery{}
	}
	return r
}

func (s Series) outcome(w Window, r recovery, baseline float64) Outcome {
	switch {
	case r.found && r.settled:
		return Stable
	case r.found:
		return Recovered
	case w.LoadEnd-w.End >= loadFactor*(w.End-w.Start) && s.lastGoodput(w) < goodputBack*baseline:
		return Metastable
	default:
		return Undecided
	}
}

// lastGoodput returns the effects per second over the last second of the load.
func (s Series) lastGoodput(w Window) float64 {
	i := int(w.LoadEnd/time.Second) - 1
	return float64(at(s.Goodput, i))
}

// bins returns those bins that begin in [from, until).
func (s Series) bins(of []int, from, until time.Duration) []int {
	first := int((from + s.Width - 1) / s.Width)
	end := min(int((until+s.Width-1)/s.Width), len(of))
	if first >= end {
		return nil
	}
	return of[first:end]
}

// between returns the samples taken in [from, until).
func (s Series) between(from, until time.Duration) []Sample {
	by := func(x Sample, t time.Duration) int { return int(x.At - t) }
	first, _ := slices.BinarySearchFunc(s.Samples, from, by)
	end, _ := slices.BinarySearchFunc(s.Samples, until, by)
	if first >= end {
		return nil
	}
	return s.Samples[first:end]
}

func at(bins []int, i int) int {
	if i < 0 || i >= len(bins) {
		return 0
	}
	return bins[i]
}

func sum(bins []int) (total int) {
	for _, n := range bins {
		total += n
	}
	return total
}
