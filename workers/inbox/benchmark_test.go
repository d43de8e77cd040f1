package inbox_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

// BenchmarkApply measures first-time effects with as many callers as connections, over 1000 SKUs.
func BenchmarkApply(b *testing.B) {
	for _, name := range []string{"transaction", "statement"} {
		for _, conns := range []int{8, 16} {
			b.Run(fmt.Sprintf("%s/conns=%d", name, conns), func(b *testing.B) { benchmarkApply(b, name, conns) })
		}
	}
}

func benchmarkApply(b *testing.B, strategy string, conns int) {
	b.Helper()
	const skus = 1000
	db := postgrestest.NewSized(b, postgres.Settings{SKUs: skus, InitialStock: 1 << 40}, conns)
	apply := strategies[strategy](b, db.Pool())
	var next atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range conns {
		all.Go(func() {
			for seq := next.Add(1); seq <= int64(b.N); seq = next.Add(1) {
				c := claim(seq)
				c.SKU = postgres.SKU(int(seq*7919) % skus)
				if got, err := apply.Apply(b.Context(), c); err != nil || got != event.Applied {
					b.Errorf("message %d is %v, %v", seq, got, err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
