package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"time"

	"spillway/workers/inbox"
)

// goodput holds the batch strategy against the transaction from end to end, and says what bounds each.
type goodput struct{}

func (goodput) name() string  { return "goodput" }
func (goodput) title() string { return "Goodput from end to end" }

func (goodput) targets() []target {
	return []target{
		{Measure: "goodput from end to end, batch against transaction, 1,000 SKUs", Unit: "x", Bound: new(2.0), Digits: 2},
		{Measure: "goodput from end to end, batch against transaction, one hot SKU", Unit: "x", Bound: new(3.0), Digits: 2},
	}
}

func (goodput) steps(o options) (int, time.Duration) {
	return len(variants) * o.pairs, 17 * time.Second
}

//go:embed profiles/goodput.yaml
var profileGoodput []byte

// goodputHandlers are the handlers at once of each worker with the batch strategy; they wait for their batch.
const goodputHandlers = 256

func (m goodput) run(ctx context.Context, e *env) (s section, err error) {
	if err := e.needDatabase(); err != nil {
		return s, err
	}
	watcher, err := e.newWatcher(ctx)
	if err != nil {
		return s, err
	}
	defer watcher.close()
	s.Runs = table{Columns: []string{"load", "pair", "batch, messages/s", "transaction, messages/s", "ratio", "others"}}
	for i, v := range variants {
		batch := []string{
			"--set", "inbox.strategy=batch", "--set", "inbox.batch.lanes=" + strconv.Itoa(feedLanes), "--set", "workers.concurrency=" + strconv.Itoa(goodputHandlers),
		}
		running := func(strategy string, args ...string) side {
			return side{strategy, func(ctx context.Context) (measurement, error) {
				return watcher.goodput(ctx, append(args, "--set", "load.skus="+strconv.Itoa(v.skus)))
			}}
		}
		pairs, err := e.pairs(ctx, "goodput, "+v.name, running(inbox.StrategyBatch, batch...), running(inbox.StrategyTransaction))
		if err != nil {
			return s, err
		}
		s.Rows = append(s.Rows, m.targets()[i].ratioRow(pairs, perSecondOf, perSecond))
		s.Notes = append(s.Notes,
			v.name+", batch: "+together(pairs, func(p pair) where { return p.a.where }).String(),
			v.name+", transaction: "+together(pairs, func(p pair) where { return p.b.where }).String())
		for _, line := range rateTable("messages/s", "batch", "transaction", pairs).Lines {
			s.Runs.add(append([]string{v.name}, line...)...)
		}
	}
	s.Text = fmt.Sprintf(textGoodput, goodputHandlers, feedLanes, busyEnough*100, lockedEnough*100)
	return s, nil
}

const textGoodput = "`spillway run`" + ` on real servers, everything measured and audited: a closed load of 1.5 s, which is more than the inbox takes, and then
the backlog until the last message has its effect. Goodput is all effects over the time from the first message due to the end of
the drain. Only the strategy differs: 2 workers with a prefetch of 512 each; transaction with 8 handlers
each, every one on a connection of its own; batch with %d handlers each, which only wait, and %d lanes in all.

The bottleneck is named from what was seen over the runs: CPU time of each program from /proc, what the database's sessions did by
pg_stat_activity twenty times a second, and its write-ahead log. A machine that is %.0f %% busy is bound by its CPU, unless %.0f %% of the
sessions that were at work waited for each other's locks.`

// goodput carries out one run and watches where its time goes.
func (w *watcher) goodput(ctx context.Context, args []string) (m measurement, err error) {
	var seen window
	r, err := w.env.spillway(ctx, experiment{
		profile: profileGoodput, args: args,
		beside: func(ctx context.Context, p *os.Process, _ string) { seen = w.sample(ctx, p.Pid) },
	})
	if err != nil {
		return m, err
	}
	m = measurement{Count: r.Messages.Applied, CPUSeconds: r.cpuSeconds, PerSecond: float64(r.Messages.Applied) / r.underWay()}
	m.where = seen.where(w.broker != 0 && w.server != 0, float64(r.Messages.Applied)/r.underWay())
	return m, nil
}

// underWay returns the seconds from the first message due to the end of the drain.
func (r *outcome) underWay() float64 {
	var from, to float64
	for _, p := range r.Phases {
		if p.Name == "load" {
			from = p.Start
		}
		if p.Name == "drain" {
			to = p.End
		}
	}
	return to - from
}
