package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"spillway/internal/ledger"
	"spillway/internal/metrics"
	"spillway/internal/probe"
	"spillway/internal/result"
	"spillway/internal/storm"
)

// logInterval is the length of an interval in the latency logs. To encode a histogram takes half a millisecond, and half a dozen
// of them every second would be a thirtieth of what a busy generator does.
const logInterval = 5 * time.Second

// watch hears the probe: ten times a second it feeds gauges and the storm's samples, once a second it writes a row of the
// series and tells the panel, and now and then it rotates the latency logs. It implements probe.Listener.
type watch struct {
	run    *run
	file   *os.File
	series *result.SeriesWriter

	lastSecond time.Duration // in whole seconds; the probe's goroutine owns it
	rotated    time.Duration // when the latency logs got their last interval; the same

	mu     sync.Mutex // guards all below
	phase  string
	faults []string
	last   second
	ready  map[string]int // by queue, as of the last round
	err    error          // the first error of writing
}

// second is what the last row was made from.
type second struct {
	at      time.Duration
	counts  ledger.Counts
	returns int64
	blocked time.Duration
}

func newWatch(r *run) (*watch, error) {
	file, err := os.Create(filepath.Join(r.o.Dir, "series.csv"))
	if err != nil {
		return nil, fmt.Errorf("series: %w", err)
	}
	series, err := result.NewSeriesWriter(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("series: %w", err), file.Close())
	}
	return &watch{run: r, file: file, series: series, phase: PhaseWarmup}, nil
}

// Viewed implements probe.Listener.
func (w *watch) Viewed(v ledger.View) {
	w.run.storm.Sample(storm.Sample{At: v.At, Age: v.Unsettled, Debt: v.RetryDebt})
	w.gauges(v)
	if v.At/time.Second > w.lastSecond {
		w.lastSecond = v.At / time.Second
		w.show(w.tick(v))
	}
}

// show tells the panel, without the lock: a reader of our output that stalls must not hold up a fault.
func (w *watch) show(p Progress) {
	if w.run.o.Progress != nil {
		w.run.o.Progress(p)
	}
}

// Measured implements probe.Listener.
func (w *watch) Measured(d probe.Depths) {
	m, p := w.run.metrics, w.run.plan
	m.SetDepth(metrics.Work, d.Ready[p.Work])
	m.SetDepth(metrics.Parking, d.Ready[p.Parking])
	for _, t := range p.Tiers {
		n := 0
		for _, q := range t.Queues {
			n += d.Ready[q.Queue]
		}
		m.SetDepth(t.Name, n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = d.Ready
}

func (w *watch) gauges(v ledger.View) {
	m := w.run.metrics
	m.SetOldestAge(metrics.Work, v.Work)
	m.SetOldestAge(metrics.Retry, v.Retry)
	m.SetOldestAge(metrics.Parking, v.Parking)
	m.SetOldestAge(metrics.Unsettled, v.Unsettled)
	for tier, age := range v.Tiers {
		m.SetOldestAge(tier, age)
	}
	m.SetInFlight(v.Pending)
	m.SetUnacked(v.Held)
	m.SetRetryDebt(v.RetryDebt)
}

// tick ends one second and returns what the panel shows of it.
func (w *watch) tick(v ledger.View) Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.run
	pool := r.pool()
	r.metrics.SetPool(pool.Acquired, pool.Idle, pool.Max)
	r.metrics.SetPoolWait(pool.Wait)
	counts := r.ledger.Counts()
	before := w.last
	now := second{at: v.At, counts: counts, returns: r.signals.returns.Load(), blocked: r.signals.blockedFor(v.At)}
	w.keep(w.series.Write(w.row(v, now)))
	if w.rotated+logInterval <= v.At {
		w.keep(r.logs.Rotate(v.At))
		w.rotated = v.At
	}
	w.last = now
	l := &r.o.Profile.Load
	return Progress{
		Phase: w.phase, Elapsed: max(0, v.At-leadTime), Planned: l.Warmup + l.Duration, Counts: counts, Since: before.counts,
		View: v, Breaker: r.signals.breakerNow(), Faults: slices.Clone(w.faults), Interval: v.At - before.at,
	}
}

func (w *watch) row(v ledger.View, now second) result.Row {
	c, b := now.counts, w.last.counts
	row := result.Row{
		Elapsed: v.At.Seconds(), Phase: w.phase,
		Offered: c.Offered - b.Offered, Sent: c.Publishes - b.Publishes, Confirmed: c.Confirmed - b.Confirmed,
		Returned: c.Returned - b.Returned, Nacked: c.Nacked - b.Nacked, Unknown: c.Unknown - b.Unknown, Shed: c.Shed - b.Shed,
		Delivered: c.Delivered - b.Delivered, Applied: c.Applied - b.Applied, Refused: c.Refused - b.Refused,
		Duplicates: c.Duplicates - b.Duplicates, Acked: c.Acked - b.Acked, Retried: c.Retried - b.Retried,
		ReturnedFromRetry: now.returns - w.last.returns, Parked: c.Parked - b.Parked,
		InFlight: result.Level(float64(v.Pending)), Unacked: result.Level(float64(v.Held)),
		RetryDebt: result.Level(float64(v.RetryDebt)), OldestWork: result.Level(v.Work.Seconds()),
		OldestRetry: result.Level(v.Retry.Seconds()), OldestParking: result.Level(v.Parking.Seconds()),
		OldestUnsettled: result.Level(v.Unsettled.Seconds()), BlockedSecs: result.Level((now.blocked - w.last.blocked).Seconds()),
		BreakerState: w.run.signals.breakerNow(), Fault: strings.Join(w.faults, "+"),
	}
	if ready, known := w.ready[w.run.plan.Work]; known {
		row.Ready = result.Level(float64(ready))
	}
	return row
}

func (w *watch) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

// enter says that the run is in a phase from now on.
func (w *watch) enter(phase string) {
	w.run.metrics.SetPhase(phase)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = phase
}

func (w *watch) fault(kind string, active bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if active {
		w.faults = append(w.faults, kind)
		return
	}
	if i := slices.Index(w.faults, kind); i >= 0 {
		w.faults = slices.Delete(w.faults, i, i+1)
	}
}

// close ends series and logs. The probe must have stopped.
func (w *watch) close(now time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(w.run.logs.Close(now))
	w.keep(w.file.Close())
	if w.err != nil {
		return fmt.Errorf("series and latency logs: %w", w.err)
	}
	return nil
}
