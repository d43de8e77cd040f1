// Package loadgen is the load side: it walks the schedule and hands each arrival, when it is due, to a sink that never
// makes it wait. The schedule is open-loop and anchored at the run's time base, so a slow broker does not slow the
// arrivals down, and latencies can be counted from the instant a message was due.
//
// loadgen knows neither the workers nor a concrete broker driver.
package loadgen

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/timebase"
	"spillway/loadgen/arrival"
	"spillway/loadgen/publish"
)

// Config is what a Generator needs.
type Config struct {
	Base     *timebase.Base
	Start    time.Duration // offset of the first arrival's schedule on Base
	Warmup   time.Duration // arrivals before Start + Warmup are warm-up
	Shape    arrival.Shape // the offered rate over time, warm-up included
	Arrivals string        // spacing, see arrival.FromShape
	Seed     uint64
	Sinks    []Sink // at least one; each takes every n-th arrival, so their phases are spread evenly
	Lag      Lag
	Alarm    func() Alarm // makes one for each sink, see NewAlarm; nil leaves sleeping to the runtime's timer
}

// Sink takes arrivals to the broker: a publish.Publisher straight away, an outbox by way of a database. Offer and Finish
// are called by one goroutine, Run by another.
type Sink interface {
	// Offer hands one due arrival in. It never blocks: what cannot be sent in time waits in the sink or is shed there.
	Offer(publish.Arrival)
	// Finish says that no more arrivals come.
	Finish()
	// Run works until every arrival has its last outcome, or until ctx, the hard stop, ends.
	Run(ctx context.Context) error
}

// Lag hears, for every arrival, how long after its due instant it was handed to its publisher: the generator's own health,
// which no broker can spoil. It must be safe for concurrent use.
type Lag interface {
	Record(time.Duration)
}

// Generator offers the load of one run.
type Generator struct {
	cfg      Config
	stopOnce sync.Once
	stopped  chan struct{}
	walkers  sync.WaitGroup
	walked   chan struct{}
}

// New returns a generator, or an error for an unknown kind of arrivals.
func New(cfg Config) (*Generator, error) {
	if _, err := cfg.process(); err != nil {
		return nil, err
	}
	return &Generator{cfg: cfg, stopped: make(chan struct{}), walked: make(chan struct{})}, nil
}

func (c *Config) process() (arrival.Process, error) {
	return arrival.FromShape(c.Shape, c.Arrivals, c.Seed)
}

func (c *Config) alarm() Alarm {
	if c.Alarm == nil {
		return nil
	}
	return c.Alarm()
}

// Run offers the whole schedule and returns when every message has its last outcome. Ending ctx is the hard stop; Stop
// is the gentle one.
func (g *Generator) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	g.walkers.Add(len(g.cfg.Sinks))
	for i, sink := range g.cfg.Sinks {
		group.Go(func() error { return g.walk(ctx, i, sink) })
		group.Go(func() error { return sink.Run(ctx) })
	}
	g.walkers.Wait()
	close(g.walked)
	return group.Wait()
}

// Walked is closed when no more arrivals come: the schedule is over, or the offering was stopped.
func (g *Generator) Walked() <-chan struct{} { return g.walked }

// Stop ends the offering; what was offered so far is still taken to its last outcome. It may be called at any time, more
// than once.
func (g *Generator) Stop() { g.stopOnce.Do(func() { close(g.stopped) }) }

// walk goes through the schedule and hands every arrival of sink own to it.
func (g *Generator) walk(ctx context.Context, own int, sink Sink) error {
	defer g.walkers.Done()
	defer sink.Finish()
	process, err := g.cfg.process()
	if err != nil {
		return err
	}
	pacer := newPacer(g.cfg.Base, g.stopped, g.cfg.alarm())
	defer pacer.close()
	for seq := int64(0); ; seq++ {
		due, more := process.Next()
		if !more {
			return nil
		}
		if seq%int64(len(g.cfg.Sinks)) != int64(own) {
			continue
		}
		due += g.cfg.Start
		if !pacer.until(ctx, due) {
			return nil
		}
		g.cfg.Lag.Record(g.cfg.Base.Now() - due)
		sink.Offer(publish.Arrival{Seq: seq, Scheduled: due, Warmup: due < g.cfg.Start+g.cfg.Warmup})
	}
}
