package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// schedule finds how well a constant rate is kept.
type schedule struct{}

func (schedule) name() string  { return "schedule" }
func (schedule) title() string { return "Keeping to the schedule" }

// What is asked of each run, as profiles/schedule.yaml has it.
const (
	scheduleRuns      = 5
	scheduleRate      = 5000 // messages/s
	scheduleSeconds   = 30   // that count
	scheduleWarmup    = 1    // seconds
	scheduleTotal     = scheduleRate * (scheduleWarmup + scheduleSeconds)
	scheduleTolerance = 0.005
	// scheduleSteal is the share of CPU time beyond which a run says more of the hypervisor than of the schedule.
	scheduleSteal = 0.01
	// scheduleRepeats bounds the runs that are repeated for that.
	scheduleRepeats = 5
)

func (schedule) targets() []target {
	return []target{
		{Measure: "5,000/s for 30 s: p99 of the schedule lag, median of 5 runs", Unit: "ms", AtMost: true, Bound: new(2.0), Goal: new(1.0), Digits: 2, ByValue: true, Least: scheduleRuns},
		{Measure: "5,000/s for 30 s: seconds within 0.5 % of the rate, the worst run", Unit: "s", Bound: new(29.0), ByValue: true, Least: scheduleRuns},
		{Measure: "5,000/s for 30 s: messages offered and confirmed, off the exact total, the worst run", Unit: "messages", AtMost: true, Bound: new(0.0), ByValue: true, Least: scheduleRuns},
	}
}

func (schedule) steps(o options) (int, time.Duration) {
	return min(scheduleRuns, o.pairs), (scheduleWarmup+scheduleSeconds)*time.Second + 2*time.Second
}

//go:embed profiles/schedule.yaml
var profileSchedule []byte

// kept is what one run says of the schedule.
type kept struct {
	lag     float64 // p99, milliseconds
	within  int     // seconds
	least   int64   // messages in the slowest second
	most    int64   // and in the fastest
	missing int64   // of the exact total
	steal   float64
	others  float64
}

var errStolen = errors.New("the hypervisor took too much of the CPU")

func (m schedule) run(ctx context.Context, e *env) (s section, err error) {
	var runs []kept
	wanted, _ := m.steps(e.o)
	for repeated := 0; len(runs) < wanted; {
		busy := others(ctx)
		r, err := e.spillway(ctx, experiment{profile: profileSchedule, forgive: []string{codeUnaudited}})
		if err != nil {
			return s, err
		}
		k, err := keptOf(r)
		if err != nil {
			return s, err
		}
		if k.steal > scheduleSteal {
			if repeated++; repeated > scheduleRepeats {
				return s, fmt.Errorf("%w: %.1f %% in the last of %d runs that were to be repeated", errStolen, 100*k.steal, repeated)
			}
			continue
		}
		k.others = busy
		runs, e.others = append(runs, k), append(e.others, busy)
		e.step("schedule, run %d of %d: lag %.2f ms at p99, %d of %d seconds within %.1f %%", len(runs), wanted, k.lag, k.within, scheduleSeconds, 100*scheduleTolerance)
	}
	return m.section(runs), nil
}

func keptOf(r outcome) (kept, error) {
	lag := r.Latency.ScheduleLag
	if lag == nil || len(r.Publish.SentEachSecond) == 0 {
		return kept{}, fmt.Errorf("%w: it has no schedule lag, or no second of load", errSpoilt)
	}
	k := kept{lag: 1000 * lag.P99, least: math.MaxInt64, steal: r.Environment.Host.Steal}
	for _, n := range r.Publish.SentEachSecond {
		k.least, k.most = min(k.least, n), max(k.most, n)
		if math.Abs(float64(n-scheduleRate)) <= scheduleTolerance*scheduleRate {
			k.within++
		}
	}
	k.missing = max(abs(scheduleTotal-r.Messages.Offered), abs(scheduleTotal-r.Messages.Confirmed))
	return k, nil
}

func abs(n int64) int64 { return max(n, -n) }

func (m schedule) section(runs []kept) (s section) {
	t := m.targets()
	lag := bootstrap(of(runs, func(k kept) float64 { return k.lag }))
	within := slices.Min(of(runs, func(k kept) float64 { return float64(k.within) }))
	missing := slices.Max(of(runs, func(k kept) float64 { return float64(k.missing) }))
	s.Rows = []row{
		t[0].of(lag, len(runs), fmt.Sprintf("%.2f ms", lag.Mid), ""),
		t[1].of(exactly(within), len(runs), fmt.Sprintf("%.0f of %d", within, scheduleSeconds), ""),
		t[2].of(exactly(missing), len(runs), fmt.Sprintf("%.0f of %s", missing, thousands(scheduleTotal)), ""),
	}
	s.Text = fmt.Sprintf(textSchedule, scheduleRate, scheduleSeconds, scheduleWarmup, len(runs), 100*scheduleSteal)
	s.Runs = table{Columns: []string{"run", "lag p99, ms", "seconds within 0.5 %", "slowest second", "fastest second", "off the total", "steal", "others"}}
	for i, k := range runs {
		s.Runs.add(strconv.Itoa(i+1), fmt.Sprintf("%.2f", k.lag), strconv.Itoa(k.within), strconv.FormatInt(k.least, 10),
			strconv.FormatInt(k.most, 10), strconv.FormatInt(k.missing, 10), fmt.Sprintf("%.2f %%", 100*k.steal), percent(k.others))
	}
	return s
}

const textSchedule = `A constant load of %d messages/s on broker and workers without a database: %d s that count after %d s of warm-up, %d runs.
The window of 1,000 unconfirmed messages lets the broker pause for 0.2 s without anybody waiting. The lag is sent - due of every message. A second is a whole one counted from the start of the measured load, and its messages are those that
were sent in it. A run in which the hypervisor took more than %.0f %% of the CPU time is repeated. The target speaks of the median
itself, so that is what is judged.`
