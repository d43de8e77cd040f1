package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"spillway/workers/inbox"
)

// bareLoop holds the batch strategy against a loop that sends the same arrays ready-made.
type bareLoop struct{}

func (bareLoop) name() string  { return "bare-loop" }
func (bareLoop) title() string { return "The batch inbox against a bare loop" }

func (bareLoop) targets() []target {
	return []target{{Measure: "inbox batch rows/s, against a bare pgx loop sending the same arrays", Unit: "x", Bound: new(0.85), Digits: 3}}
}

func (bareLoop) steps(o options) (int, time.Duration) {
	return bareMore * o.pairs, 2*(feedWarmup+feedFor+time.Second) + quiet
}

// bareMore times the pairs of the others are taken here, since the two sides are close to each other.
const bareMore = 2

func (m bareLoop) run(ctx context.Context, e *env) (s section, err error) {
	if err := e.needDatabase(); err != nil {
		return s, err
	}
	t := task{Strategy: inbox.StrategyBatch, SKUs: 1000, Duration: feedFor, Warmup: feedWarmup, Callers: feedCallers, Conns: feedConns, Lanes: feedLanes, Rows: feedRows}
	pairs, err := e.times(ctx, bareMore*e.o.pairs, "bare loop",
		side{"batch", func(ctx context.Context) (measurement, error) { return e.child(ctx, "feed", t) }},
		side{"bare loop", func(ctx context.Context) (measurement, error) { return e.child(ctx, "bare", t) }})
	if err != nil {
		return s, err
	}
	s.Rows = []row{m.targets()[0].ratioRow(pairs, perSecondOf, perSecond)}
	s.Text = fmt.Sprintf(textBare, feedLanes, inbox.DefaultBatchSize, t.SKUs)
	s.Runs = rateTable("rows/s", "batch", "bare loop", pairs)
	return s, nil
}

const textBare = `The batch strategy as above; beside it %d connections that send its statement in plain loops, with arrays of %d messages that were made
before the clock started, over %d SKUs. It is what the strategy would do if taking messages from callers, gathering them and
handing results back cost nothing.`

// runBare sends ready arrays from a plain loop for each lane, until they or the time are used up.
func runBare(ctx context.Context, s servers, t task) (m measurement, err error) {
	db, drop, err := schemaFor(ctx, s, t)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	ready, err := readyArrays(t)
	if err != nil {
		return m, err
	}
	const warmup = feedWarmupRows / inbox.DefaultBatchSize
	return warmed(ctx, t, t.Lanes, ready[:warmup], ready[warmup:], func(ctx context.Context, a *inbox.Arrays) (int, error) {
		return a.Len(), a.Send(ctx, db.Pool())
	})
}

func readyArrays(t task) ([]*inbox.Arrays, error) {
	var ready []*inbox.Arrays
	for from := 0; from < feedWarmupRows+t.Rows; from += inbox.DefaultBatchSize {
		a, err := inbox.NewArrays(claims(int64(from), inbox.DefaultBatchSize, t.SKUs))
		if err != nil {
			return nil, err
		}
		ready = append(ready, a)
	}
	return ready, nil
}
