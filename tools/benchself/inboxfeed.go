package main

import (
	"context"
	"fmt"
	"time"

	"spillway/workers/inbox"
)

// inboxFeed holds the batch strategy against the transaction, fed from memory.
type inboxFeed struct{}

func (inboxFeed) name() string  { return "inbox" }
func (inboxFeed) title() string { return "The inbox fed from memory" }

func (inboxFeed) targets() []target {
	return []target{
		{Measure: "inbox fed from memory, batch against transaction, 1,000 SKUs", Unit: "x", Bound: new(4.0), Goal: new(10.0), Digits: 2},
		{Measure: "inbox fed from memory, batch against transaction, one hot SKU", Unit: "x", Bound: new(8.0), Goal: new(20.0), Digits: 2},
	}
}

// What both strategies are given.
const (
	feedCallers = 1024
	feedConns   = 16
	feedLanes   = 4
	feedWarmup  = 500 * time.Millisecond
	feedFor     = 2500 * time.Millisecond
	feedRows    = 250_000 // at most, made ready before: 2.5 s of 100,000 a second
)

// variants are the SKUs of a measure, in the order of its targets.
var variants = []struct {
	name string
	skus int
}{{"1,000 SKUs", 1000}, {"one hot SKU", 1}}

func (inboxFeed) steps(o options) (int, time.Duration) {
	return len(variants) * o.pairs, 2*(feedWarmup+feedFor+500*time.Millisecond) + quiet
}

func (m inboxFeed) run(ctx context.Context, e *env) (s section, err error) {
	if err := e.needDatabase(); err != nil {
		return s, err
	}
	s.Runs = table{Columns: []string{"load", "pair", "batch, messages/s", "transaction, messages/s", "ratio", "others"}}
	for i, v := range variants {
		feeding := func(strategy string) side {
			return side{strategy, func(ctx context.Context) (measurement, error) {
				return e.child(ctx, "feed", task{
					Strategy: strategy, SKUs: v.skus, Duration: feedFor, Warmup: feedWarmup, Callers: feedCallers, Conns: feedConns, Lanes: feedLanes, Rows: feedRows,
				})
			}}
		}
		pairs, err := e.pairs(ctx, "inbox, "+v.name, feeding(inbox.StrategyBatch), feeding(inbox.StrategyTransaction))
		if err != nil {
			return s, err
		}
		s.Rows = append(s.Rows, m.targets()[i].ratioRow(pairs, perSecondOf, perSecond))
		for _, line := range rateTable("messages/s", "batch", "transaction", pairs).Lines {
			s.Runs.add(append([]string{v.name}, line...)...)
		}
	}
	s.Text = fmt.Sprintf(textInbox, feedCallers, feedConns, feedLanes, inbox.DefaultBatchSize, feedLinger, feedWarmup, feedFor, thousands(feedRows))
	return s, nil
}

const textInbox = `No broker: %d callers apply messages from memory, each one after the other, through a pool of %d connections, in a schema of
their own; every message is new, and was made before the clock started; the collector waits longer than usual (GOGC=400), since that is a heap that no service has. The batch strategy uses %d of the connections (lanes), up to %d messages in a commit, and lets a batch wait for %v. At most %v of
warm-up, then at most %v that count, less when %s messages are done before.`
