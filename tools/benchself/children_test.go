package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"spillway/workers/inbox"
)

func TestThePlainLoopPublishesConsumesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := testServers(t)
	load := task{Duration: 300 * time.Millisecond, Warmup: 100 * time.Millisecond, Window: 20, Prefetch: 20, Size: 512}
	m, err := runPlain(t.Context(), s, load)
	if err != nil {
		t.Fatal(err)
	}
	if m.PerSecond < 10 || float64(m.Count) < m.PerSecond*0.2 {
		t.Errorf("%v confirmed a second, %d in all", m.PerSecond, m.Count)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runPlain(ctx, s, load); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped at once it says %v", err)
	}
}

// TestEveryChildDoesItsTask is about the tasks and not about their speed: few messages, which must all be done.
func TestEveryChildDoesItsTask(t *testing.T) {
	t.Parallel()
	s := testServers(t)
	small := task{Duration: time.Minute, Warmup: time.Minute, Window: 50, Size: 512, SKUs: 10, Callers: 64, Conns: 8, Lanes: 2, Rows: 3 * inbox.DefaultBatchSize}
	for name, row := range map[string]struct {
		kind, strategy string
		want           int
	}{
		"batches from memory":   {"feed", inbox.StrategyBatch, feedWarmupRows + small.Rows},
		"arrays from memory":    {"bare", "", feedWarmupRows + small.Rows},
		"messages from memory":  {"direct", "", small.Rows},
		"rows of an outbox":     {"relay", "", small.Rows},
		"transactions, in time": {"feed", inbox.StrategyTransaction, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do := small
			if do.Strategy = row.strategy; row.want == 0 {
				do.Warmup, do.Duration = 50*time.Millisecond, 100*time.Millisecond
			}
			m, err := kinds()[row.kind](t.Context(), s, do)
			if err != nil || m.PerSecond <= 0 || m.Count <= 0 || (row.want > 0 && m.Count != int64(row.want)) {
				t.Errorf("%+v, %v; want %d done", m, err, row.want)
			}
		})
	}
}

func TestClaimsHaveIDsOfTheirOwnAndSKUsThatExist(t *testing.T) {
	t.Parallel()
	ids, skus := map[string]bool{}, map[string]int{}
	for _, c := range append(claims(0, 500, 10), claims(500, 500, 10)...) {
		ids[c.MessageID] = true
		skus[c.SKU]++
	}
	if len(ids) != 1000 || len(skus) != 10 || skus["SKU-000000"] != 100 {
		t.Errorf("%d ids, SKUs %v; want 1000 ids and 10 SKUs a hundred times each", len(ids), skus)
	}
}
