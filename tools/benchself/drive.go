package main

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// driven is what came of driving: how much was done, and in what time.
type driven struct {
	count   int64
	elapsed time.Duration
}

func (d driven) perSecond() float64 { return float64(d.count) / d.elapsed.Seconds() }

// drive does items that are ready, from as many goroutines as asked for, each one after the other, until all are done or
// the time is over, and returns how much do said was done. What is under way at the end is finished and counts, and so
// does its time. The first error ends it.
func drive[T any](ctx context.Context, goroutines int, items []T, atMost time.Duration, do func(context.Context, T) (int, error)) (driven, error) {
	stop, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	var next, total atomic.Int64
	errs := make([]error, goroutines)
	began := time.Now()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)) && stop.Err() == nil; i = next.Add(1) - 1 {
				n, err := do(ctx, items[i])
				if total.Add(int64(n)); err != nil {
					errs[g] = err
					cancel()
				}
			}
		})
	}
	all.Wait()
	return driven{total.Load(), time.Since(began)}, errors.Join(errors.Join(errs...), ctx.Err())
}

// readyGCPercent lets the collector wait longer than usual: what was made ready before the clock started is a heap that no service has,
// and to look through it again and again would be charged to whoever allocates more.
const readyGCPercent = 400

// warmed drives the first items to warm up, then the rest, and returns what the rest came to. Items that the warm-up had
// no time for are left out.
func warmed[T any](ctx context.Context, t task, goroutines int, warmup, items []T, do func(context.Context, T) (int, error)) (m measurement, err error) {
	debug.SetGCPercent(readyGCPercent)
	before, err := drive(ctx, goroutines, warmup, t.Warmup, do)
	if err != nil {
		return m, err
	}
	d, err := drive(ctx, goroutines, items, t.Duration, do)
	return measurement{PerSecond: d.perSecond(), Count: before.count + d.count}, err
}
