package inbox_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/workers/inbox"
)

// The load of the benchmarks: as many callers and connections for every strategy.
const (
	benchCallers = 1024
	benchConns   = 16
	benchLanes   = 4
	benchLinger  = time.Millisecond
	// benchWarmup is how many messages come before the measured ones. The server plans a statement anew for the first
	// five times on a connection, which in a short benchmark is most of it.
	benchWarmup = 12 * inbox.DefaultBatchSize
)

// BenchmarkApply measures first-time effects over 1000 SKUs and on a hot one, the strategies from the same callers on the
// same pool.
func BenchmarkApply(b *testing.B) {
	for _, skus := range []int{1000, 1} {
		for _, callers := range []int{256, 1024} {
			for _, name := range []string{inbox.StrategyTransaction, inbox.StrategyStatement, inbox.StrategyBatch} {
				b.Run(fmt.Sprintf("skus=%d/callers=%d/%s", skus, callers, name), func(b *testing.B) {
					db := benchDB(b, skus)
					benchmarkApply(b, benchInbox(b, name, db.Pool()), skus, callers)
				})
			}
		}
	}
}

// BenchmarkLanes shows what more batches under way at once gain, and what they cost on a hot SKU.
func BenchmarkLanes(b *testing.B) {
	for _, skus := range []int{1000, 1} {
		for _, lanes := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("skus=%d/lanes=%d", skus, lanes), func(b *testing.B) {
				batch := newBatch(b, benchDB(b, skus).Pool(), inbox.BatchOptions{Lanes: lanes})
				benchmarkApply(b, batch, skus, benchCallers)
			})
		}
	}
}

// BenchmarkCallers shows how large batches become from few callers and from many, and what lingering gains.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{benchConns, 4 * benchConns, 16 * benchConns} {
		b.Run(fmt.Sprintf("callers=%d/transaction", callers), func(b *testing.B) {
			benchmarkApply(b, inbox.NewTransaction(benchDB(b, 1000).Pool()), 1000, callers)
		})
		for _, lanes := range []int{1, 2, 4} {
			for _, linger := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond} {
				b.Run(fmt.Sprintf("callers=%d/lanes=%d/linger=%v", callers, lanes, linger), func(b *testing.B) {
					batch := newBatch(b, benchDB(b, 1000).Pool(), inbox.BatchOptions{Lanes: lanes, Linger: linger})
					benchmarkApply(b, batch, 1000, callers)
				})
			}
		}
	}
}

// BenchmarkBareLoop sends the batch strategy's statement with arrays that are ready, from a plain loop per connection: what
// the batch strategy would do if gathering and handing back cost nothing.
func BenchmarkBareLoop(b *testing.B) {
	for _, skus := range []int{1000, 1} {
		b.Run(fmt.Sprintf("skus=%d", skus), func(b *testing.B) { benchmarkBareLoop(b, benchDB(b, skus).Pool(), skus) })
	}
}

func benchDB(b *testing.B, skus int) *postgres.DB {
	b.Helper()
	return postgrestest.NewSized(b, postgres.Settings{SKUs: skus, InitialStock: 1 << 40}, benchConns)
}

func benchInbox(b *testing.B, strategy string, pool *pgxpool.Pool) inbox.Inbox {
	b.Helper()
	if strategy == inbox.StrategyBatch {
		return newBatch(b, pool, inbox.BatchOptions{Lanes: benchLanes, Linger: benchLinger})
	}
	return strategies[strategy](b, pool)
}

func benchClaim(seq int64, skus int) inbox.Claim {
	c := claim(seq)
	c.SKU = postgres.SKU(int(seq*7919) % skus)
	return c
}

func benchmarkApply(b *testing.B, apply inbox.Inbox, skus, callers int) {
	b.Helper()
	claims := make([]inbox.Claim, benchWarmup+b.N)
	for i := range claims {
		claims[i] = benchClaim(int64(i), skus)
	}
	feed(b, apply, callers, claims[:benchWarmup])
	b.ReportAllocs()
	b.ResetTimer()
	feed(b, apply, callers, claims[benchWarmup:])
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// feed applies the claims, each caller one after the other.
func feed(b *testing.B, apply inbox.Inbox, callers int, claims []inbox.Claim) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(claims); i = int(next.Add(1)) - 1 {
				if got, err := apply.Apply(b.Context(), claims[i]); err != nil || got != event.Applied {
					b.Errorf("message %d is %v, %v", claims[i].Seq, got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// arrays are the bare loop's messages, as many as a full batch of the strategy has.
type arrays struct {
	ids, refusals        []pgtype.UUID
	seqs                 []int64
	instances, counts    []int32
	skus, orders, causes []string
	refuse               []bool
}

func benchArrays(tb testing.TB, from, n, skus int) (a arrays) {
	tb.Helper()
	for seq := from; seq < from+n; seq++ {
		c := benchClaim(int64(seq), skus)
		var id pgtype.UUID
		if err := id.Scan(c.MessageID); err != nil {
			tb.Fatal(err)
		}
		a.ids, a.refusals, a.seqs = append(a.ids, id), append(a.refusals, id), append(a.seqs, c.Seq)
		a.instances, a.counts = append(a.instances, 0), append(a.counts, int32(c.Count))
		a.skus, a.orders, a.causes = append(a.skus, c.SKU), append(a.orders, c.OrderID), append(a.causes, c.CorrelationID)
		a.refuse = append(a.refuse, false)
	}
	return a
}

func benchmarkBareLoop(b *testing.B, pool *pgxpool.Pool, skus int) {
	b.Helper()
	warmup, ready := allArrays(b, 0, benchWarmup, skus), allArrays(b, benchWarmup, b.N, skus)
	loop(b, pool, warmup)
	b.ReportAllocs()
	b.ResetTimer()
	loop(b, pool, ready)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// allArrays returns n messages in full batches.
func allArrays(tb testing.TB, from, n, skus int) (all []arrays) {
	tb.Helper()
	for i := 0; i < n; i += inbox.DefaultBatchSize {
		all = append(all, benchArrays(tb, from+i, min(inbox.DefaultBatchSize, n-i), skus))
	}
	return all
}

func loop(b *testing.B, pool *pgxpool.Pool, ready []arrays) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range benchLanes {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(ready); i = int(next.Add(1)) - 1 {
				a := &ready[i]
				var applied, refused []int64
				err := pool.QueryRow(b.Context(), inbox.SQLApplyBatch, a.ids, a.seqs, a.instances, a.skus, a.counts, a.refuse,
					a.refusals, a.orders, a.causes, inbox.TypeStockRefused).Scan(&applied, &refused)
				if err != nil || len(applied) != len(a.ids) {
					b.Errorf("%d of %d applied, %v", len(applied), len(a.ids), err)
					return
				}
			}
		})
	}
	all.Wait()
}
