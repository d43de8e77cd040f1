package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/workers/inbox"
)

// retention says what it costs that the inbox forgets.
type retention struct{}

func (retention) name() string  { return "retention" }
func (retention) title() string { return "An inbox that forgets" }

func (retention) targets() []target {
	return []target{
		{Measure: "inbox fed from memory, old claims deleted, against none forgotten", Unit: "x", Digits: 2},
		{Measure: "inbox fed from memory, old partitions dropped, against none forgotten", Unit: "x", Digits: 2},
	}
}

// What the purges are told, and for how long they are watched.
const (
	retainFor   = time.Second
	retainEvery = 250 * time.Millisecond
	retainFeed  = 4 * time.Second
	retainRows  = 300_000 // at most
)

func (retention) steps(o options) (int, time.Duration) {
	return 2 * o.pairs, 2*(feedWarmup+retainFeed+500*time.Millisecond) + quiet
}

func (m retention) run(ctx context.Context, e *env) (s section, err error) {
	if err := e.needDatabase(); err != nil {
		return s, err
	}
	feeding := func(policy string) side {
		return side{policy, func(ctx context.Context) (measurement, error) {
			return e.child(ctx, "retain", task{
				Strategy: inbox.StrategyBatch, Retention: policy, SKUs: variants[0].skus, Duration: retainFeed, Warmup: feedWarmup,
				Callers: feedCallers, Conns: feedConns, Lanes: feedLanes, Rows: retainRows,
			})
		}}
	}
	s.Runs = table{Columns: []string{"policy", "pair", "with it, messages/s", "none, messages/s", "ratio", "others"}}
	for i, policy := range []string{inbox.RetainDelete, inbox.RetainPartitions} {
		pairs, err := e.pairs(ctx, "retention", feeding(policy), feeding(inbox.RetainAll))
		if err != nil {
			return s, err
		}
		s.Rows = append(s.Rows, m.targets()[i].ratioRow(pairs, perSecondOf, perSecond))
		wal := func(m measurement) float64 { return m.WALPerMessage }
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %.0f bytes of write-ahead log a message against %.0f; the longest purge of a run took %.0f ms", policy,
			median(of(pairs, func(p pair) float64 { return wal(p.a) })), median(of(pairs, func(p pair) float64 { return wal(p.b) })),
			1e3*median(of(pairs, func(p pair) float64 { return p.a.LongestPurge }))))
		for _, line := range rateTable("messages/s", "with it", "none", pairs).Lines {
			s.Runs.add(append([]string{policy}, line...)...)
		}
	}
	s.Text = fmt.Sprintf(textRetention, retainFor, retainEvery, retainFeed, thousands(retainRows))
	return s, nil
}

const textRetention = `As *the inbox fed from memory* with the batch strategy and 1,000 SKUs, but that each message is due when it is applied, and its id
says so. The inbox keeps a claim for %v after that and is purged every %v, which is also the width of a partition; what a purge reads
for the audit is part of it. %v that count, less when %s messages are done before.`

// runRetain is runFeed with an inbox that forgets.
func runRetain(ctx context.Context, s servers, t task) (m measurement, err error) {
	settings := postgres.Settings{SKUs: t.SKUs, InitialStock: feedStock}
	if t.Retention == inbox.RetainPartitions {
		settings.InboxPartition = retainEvery
	}
	db, drop, err := schemaWith(ctx, s, t.Conns+1, settings)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	box, err := inbox.New(t.Strategy, db.Pool(), inbox.WithBatch(inbox.BatchOptions{Lanes: t.Lanes, Linger: feedLinger}))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, inbox.Close(context.WithoutCancel(ctx), box)) }()
	purges, stop := purging(ctx, db, t.Retention)
	defer stop()
	ready := claims(0, feedWarmupRows+t.Rows, t.SKUs)
	before, err := db.Stats(ctx)
	if err != nil {
		return m, err
	}
	m, err = warmed(ctx, t, t.Callers, ready[:feedWarmupRows], ready[feedWarmupRows:], func(ctx context.Context, c inbox.Claim) (int, error) {
		c.MessageID = envelope.Identity{Run: "benchself", Seq: c.Seq}.MessageID(time.Now())
		if result, err := box.Apply(ctx, c); err != nil || result != event.Applied {
			return 0, fmt.Errorf("message %d is %v: %w", c.Seq, result, err)
		}
		return 1, nil
	})
	if err != nil {
		return m, err
	}
	after, err := db.Stats(ctx)
	m.WALPerMessage, m.LongestPurge = float64(after.Since(before).WALBytes)/float64(m.Count), purges.Counts().Longest.Seconds()
	if c := purges.Counts(); err == nil && t.Retention != inbox.RetainAll && c.Claims == 0 {
		err = fmt.Errorf("%w: %+v", errNothingForgotten, c)
	}
	return m, err
}

var errNothingForgotten = errors.New("no claim was forgotten")

// purging starts the purges of a policy, if it has any, and returns what ends them.
func purging(ctx context.Context, db *postgres.DB, policy string) (*inbox.Retention, func()) {
	r := inbox.NewRetention(inbox.RetentionConfig{DB: db, Policy: policy, Keep: retainFor, Every: retainEvery, Gone: func([]int64) {}})
	if policy == inbox.RetainAll {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return r, func() {
		cancel()
		running.Wait()
	}
}
