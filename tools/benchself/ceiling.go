package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"
)

// ceiling holds a run against a plain loop.
type ceiling struct{}

func (ceiling) name() string  { return "plain-loop" }
func (ceiling) title() string { return "Against a plain loop" }

func (ceiling) targets() []target {
	return []target{
		{Measure: "confirmed messages/s, against a plain loop", Unit: "x", Bound: new(1.15), Goal: new(1.4), Digits: 3},
		{Measure: "own CPU per message, against a plain loop", Unit: "x", AtMost: true, Bound: new(0.65), Goal: new(0.45), Digits: 3},
	}
}

func (ceiling) steps(o options) (int, time.Duration) {
	return o.pairs, 2*(o.load.duration+o.load.warmup) + 3*time.Second
}

// profileCeiling is a closed load without a database, with all that it measures switched on.
//
//go:embed profiles/ceiling.yaml
var profileCeiling []byte

// closed returns the experiment of a closed load without a database.
func closed(l closedLoad, args ...string) experiment {
	return experiment{profile: profileCeiling, forgive: []string{codeUnaudited}, args: append([]string{
		"-z", l.duration.String(), "--set", "load.warmup=" + l.warmup.String(), "-c", strconv.Itoa(l.window),
		"-q", strconv.Itoa(l.prefetch), "-s", strconv.Itoa(l.size),
	}, args...)}
}

func (m ceiling) run(ctx context.Context, e *env) (s section, err error) {
	l := e.o.load
	pairs, err := e.pairs(ctx, "plain loop",
		side{"spillway", func(ctx context.Context) (measurement, error) {
			r, err := e.spillway(ctx, closed(l))
			return r.measurement(), err
		}},
		side{"plain loop", func(ctx context.Context) (measurement, error) {
			return e.child(ctx, "plain", task{Duration: l.duration, Warmup: l.warmup, Window: l.window, Prefetch: l.prefetch, Size: l.size})
		}})
	if err != nil {
		return s, err
	}
	t := m.targets()
	s.Rows = []row{t[0].ratioRow(pairs, perSecondOf, perSecond), t[1].ratioRow(pairs, measurement.cpuPerMessage, microseconds)}
	s.Text = fmt.Sprintf(textCeiling, l.size, l.window, l.prefetch, l.warmup, l.duration)
	s.Runs = costTable("spillway", "plain loop", pairs)
	return s, nil
}

const textCeiling = `Both sides publish persistent messages of %d bytes into a quorum queue with a window of %d and consume them with a prefetch
of %d, on one broker: %v of warm-up, then %v that count.

- **spillway**: ` + "`spillway run`" + `, closed load, no database, with ledger, histograms, series and metrics on. It makes, encodes and
  decodes a real order envelope for each message.
- **plain loop**: what common Go tools do: one connection for each side, NotifyPublish, one ack for each delivery, the same
  properties and headers with a constant body. It measures nothing.

CPU is user and system time of the whole process, start and audit included, over all confirmed messages.`

func microseconds(x float64) string { return fmt.Sprintf("%.1f us", x) }

// costTable lists rate and CPU of each pair.
func costTable(a, b string, pairs []pair) table {
	t := table{Columns: []string{"pair", a + ", messages/s", b + ", messages/s", a + ", us", b + ", us", "others"}}
	for i, p := range pairs {
		t.add(strconv.Itoa(i+1), thousands(p.a.PerSecond), thousands(p.b.PerSecond), fmt.Sprintf("%.1f", p.a.cpuPerMessage()),
			fmt.Sprintf("%.1f", p.b.cpuPerMessage()), percent(p.others))
	}
	return t
}

// rateTable lists the rate of each pair.
func rateTable(unit, a, b string, pairs []pair) table {
	t := table{Columns: []string{"pair", a + ", " + unit, b + ", " + unit, "ratio", "others"}}
	for i, p := range pairs {
		t.add(strconv.Itoa(i+1), thousands(p.a.PerSecond), thousands(p.b.PerSecond), fmt.Sprintf("%.2f", p.a.PerSecond/p.b.PerSecond), percent(p.others))
	}
	return t
}
