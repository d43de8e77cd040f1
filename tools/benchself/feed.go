package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/workers/inbox"
)

// feedLinger is how long a batch of the feed waits to fill.
const feedLinger = time.Millisecond

// runFeed applies messages from memory with one inbox strategy, from as many callers and connections whichever it is, in a
// schema of its own.
func runFeed(ctx context.Context, s servers, t task) (m measurement, err error) {
	db, drop, err := schemaFor(ctx, s, t)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	box, err := inbox.New(t.Strategy, db.Pool(), inbox.WithBatch(inbox.BatchOptions{Lanes: t.Lanes, Linger: feedLinger}))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, inbox.Close(context.WithoutCancel(ctx), box)) }()
	apply := func(ctx context.Context, c inbox.Claim) (int, error) {
		if result, err := box.Apply(ctx, c); err != nil || result != event.Applied {
			return 0, fmt.Errorf("message %d is %v: %w", c.Seq, result, err)
		}
		return 1, nil
	}
	ready := claims(0, feedWarmupRows+t.Rows, t.SKUs)
	return warmed(ctx, t, t.Callers, ready[:feedWarmupRows], ready[feedWarmupRows:], apply)
}

// feedWarmupRows are applied before the measured ones: a server plans a statement anew for the first five times on a
// connection, and these are six full batches for each lane.
const feedWarmupRows = 6 * feedLanes * inbox.DefaultBatchSize

// schemaFor opens a database on a schema of its own, with stock that does not run out, and returns what removes it.
func schemaFor(ctx context.Context, s servers, t task) (*postgres.DB, func() error, error) {
	return schemaWith(ctx, s, t.Conns, postgres.Settings{SKUs: t.SKUs, InitialStock: feedStock})
}

// feedStock is more of each SKU than is ever asked for.
const feedStock = 1 << 40

func schemaWith(ctx context.Context, s servers, conns int, settings postgres.Settings) (*postgres.DB, func() error, error) {
	name := "spillway_benchself_" + strings.ToLower(rand.Text())
	db, err := postgres.Open(ctx, postgres.Config{URI: s.postgres, Schema: name, MaxConns: conns, ApplicationName: "benchself"})
	if err != nil {
		return nil, nil, err
	}
	if err := db.Provision(ctx, settings); err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, func() error {
		defer db.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
		defer cancel()
		return db.Drop(ctx)
	}, nil
}

// claims makes n messages from a sequence on. The SKUs come in an order without a pattern that neighbours share.
func claims(from int64, n, skus int) []inbox.Claim {
	const step = 7919 // a prime above any number of SKUs that is measured here
	at := time.Now()
	out := make([]inbox.Claim, n)
	for i := range out {
		seq := from + int64(i)
		out[i] = inbox.Claim{
			MessageID: envelope.Identity{Run: "benchself", Seq: seq}.MessageID(at), Seq: seq, Count: 2,
			SKU: postgres.SKU(int(seq * step % int64(skus))), OrderID: fmt.Sprintf("order-%d", seq), CorrelationID: fmt.Sprintf("req-%d", seq),
		}
	}
	return out
}
