package experiment

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	"spillway/internal/ledger"
	"spillway/internal/postgres"
)

// measured is what is taken at both ends of the measured load, so that rates are over exactly it.
type measured struct {
	mu         sync.Mutex // guards all; follow writes, the result reads after it returned
	start, end reading
}

// reading is one look at everything that only has totals.
type reading struct {
	taken    bool
	at       time.Duration
	counts   ledger.Counts
	database postgres.Statistics
	known    bool // of database
	self     totals
}

// follow takes the readings when their time comes. A load that ends before it began to be measured has none.
func (m *measured) follow(ctx context.Context, r *run) {
	loadStart := time.NewTimer(leadTime + r.o.Profile.Load.Warmup - r.base.Now())
	defer loadStart.Stop()
	select {
	case <-loadStart.C:
		m.set(&m.start, r.read(ctx))
	case <-r.generator.Walked():
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-r.generator.Walked():
		m.set(&m.end, r.read(ctx))
	case <-ctx.Done():
	}
}

func (m *measured) set(which *reading, to reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*which = to
}

// span returns both readings; false when the load did not get that far.
func (m *measured) span() (start, end reading, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.start, m.end, m.start.taken && m.end.taken && m.end.at > m.start.at
}

// strain returns how this process fared between both readings; false when the load did not get that far.
func (m *measured) strain() (s strain, ok bool) {
	start, end, ok := m.span()
	if !ok {
		return strain{}, false
	}
	return end.self.since(&start.self, end.at-start.at), true
}

// statisticsTimeout bounds one look at the database's statistics: during a fault it may be away.
const statisticsTimeout = 2 * time.Second

func (r *run) read(ctx context.Context) reading {
	out := reading{taken: true, at: r.base.Now(), counts: r.ledger.Counts(), self: readTotals()}
	ctx, cancel := context.WithTimeout(ctx, statisticsTimeout)
	defer cancel()
	statistics, err := r.db.Stats(ctx)
	out.database, out.known = statistics, err == nil
	return out
}

// usage is what this process took from the machine since it was begun.
type usage struct {
	cpu   time.Duration
	pause time.Duration
	rss   int64
}

// used returns this process's own totals so far.
func used() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return usage{}
	}
	return usage{cpu: cpuTime(), pause: longestPause(), rss: maxRSS(u.Maxrss)}
}

// maxRSS turns the kernel's unit into bytes: Linux counts kibibytes, Darwin bytes.
func maxRSS(v int64) int64 {
	if runtime.GOOS == "darwin" {
		return v
	}
	return v * 1024
}

// longestPause returns the upper edge of the highest bucket that holds a pause, since the process started.
func longestPause() time.Duration {
	sample := []metrics.Sample{{Name: pauses}}
	metrics.Read(sample)
	h := histogramOf(sample[0])
	return quantile(&h, 1)
}
