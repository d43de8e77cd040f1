package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// observers finds what ledger, histograms and metrics cost: by profile, and against a run of which nothing hears.
type observers struct{}

func (observers) name() string  { return "observers" }
func (observers) title() string { return "The cost of measuring" }

func (observers) targets() []target {
	return []target{
		{Measure: "ledger, histograms and metrics, of the process's CPU by profile", Unit: "%", AtMost: true, Bound: new(8.0), Digits: 1},
		{Measure: "own CPU per message, observers on against off", Unit: "x", Digits: 3},
	}
}

// observedFor is the measured part of each run. A profile has a hundred samples for each second of CPU time, so a run of a
// few seconds has a few hundred, of which a share is known to the percent or two. So it is the mean that is taken: of numbers whose error
// is chance alone it knows more than the median.
const observedFor = 10 * time.Second

func (observers) steps(o options) (int, time.Duration) {
	return o.pairs, 2*(observedFor+o.load.warmup) + 3*time.Second
}

func (m observers) run(ctx context.Context, e *env) (s section, err error) {
	pairs, err := e.pairs(ctx, "observers",
		side{"on", func(ctx context.Context) (measurement, error) { return e.profiled(ctx, "on") }},
		side{"off", func(ctx context.Context) (measurement, error) { return e.profiled(ctx, "off") }})
	if err != nil {
		return s, err
	}
	t := m.targets()
	share := resampled(of(pairs, func(p pair) float64 { return 100 * p.a.observing.sum() }), mean)
	s.Rows = []row{
		t[0].of(share, len(pairs), fmt.Sprintf("%.1f %%", share.Mid), ""),
		t[1].ratioRow(pairs, measurement.cpuPerMessage, microseconds),
	}
	s.Notes = []string{fmt.Sprintf("Confirmed messages/s, on against off: %.3fx.", ratio(pairs, perSecondOf).Mid), byPackage(pairs)}
	s.Text = fmt.Sprintf(textObservers, observedFor)
	s.Runs = costTable("on", "off", pairs)
	s.Runs.Columns = append(s.Runs.Columns, "share by profile")
	for i, p := range pairs {
		s.Runs.Lines[i] = append(s.Runs.Lines[i], fmt.Sprintf("%.1f %%", 100*p.a.observing.sum()))
	}
	return s, nil
}

// byPackage says which observers the share consists of, in the mean.
func byPackage(pairs []pair) string {
	sum := shares{}
	for _, p := range pairs {
		for who, share := range p.a.observing {
			sum[who] += share / float64(len(pairs))
		}
	}
	parts := slices.SortedFunc(maps.Keys(sum), func(a, b string) int { return cmp.Compare(sum[b], sum[a]) })
	for i, who := range parts {
		parts[i] = fmt.Sprintf("%s %.1f %%", who, 100*sum[who])
	}
	return "By package: " + strings.Join(parts, ", ") + "."
}

const textObservers = `The closed load of the comparison with the plain loop, %v that count, with observers on and off in the same binary
(` + "`run --observers off`" + `), each run with a CPU profile.

The share is that of the samples whose stack passes through an observer (event fan-out, ledger, latency recorders, storm series,
metrics, probe, or the libraries beneath them), of all samples of the process from its start to its end: the mean over the runs, each of which has some hundred. Stacks are used instead
of pprof labels, since setting a label for each message costs more than an observer does. What observers make the garbage
collector do is not on their stacks; the ratio of on and off holds it too. Off is not nothing: settled and acked messages are
counted, by one atomic addition each.`

// profiled runs the closed load under a CPU profile.
func (e *env) profiled(ctx context.Context, observers string) (m measurement, err error) {
	dir, err := os.MkdirTemp("", "spillway-benchself-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cpu.pprof")
	l := e.o.load
	l.duration = observedFor
	x := closed(l, "--observers", observers, "--cpuprofile", path)
	x.forgive = append(x.forgive, codeUntimed)
	r, err := e.spillway(ctx, x)
	if err != nil {
		return m, err
	}
	m = r.measurement()
	file, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer file.Close()
	m.observing, err = observingShares(file)
	return m, errors.Join(err, ctx.Err())
}
