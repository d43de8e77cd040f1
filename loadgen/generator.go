// Package loadgen is the load side: it walks the schedule and hands each arrival, when it is due, to a sink that never
// makes it wait. The schedule is open-loop and anchored at the run's time base, so a slow broker does not slow the
// arrivals down, and latencies can be counted from the instant a message was due.
//
// loadgen knows neither the workers nor a concrete broker driver.
package loadgen

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/loadgen/arrival"
	"spillway/loadgen/publish"
)

// Config is what a Generator needs.
type Config struct {
	Base       *timebase.Base
	Start      time.Duration // offset of the first arrival's schedule on Base
	Warmup     time.Duration // arrivals before Start + Warmup are warm-up
	Span       time.Duration // warm-up and measured load together
	Rate       float64       // messages per second, all publishers together
	Arrivals   string        // see arrival.New
	Seed       uint64
	Publishers int
	Window     int // unsettled publishes per publisher
	ShedAfter  time.Duration
	Driver     broker.Driver
	Factory    *publish.Factory
	Observer   event.LoadObserver
	Links      event.LinkObserver
	Lag        Lag
}

// Lag hears, for every arrival, how long after its due instant it was handed to its publisher: the generator's own health,
// which no broker can spoil. It must be safe for concurrent use.
type Lag interface {
	Record(time.Duration)
}

// Generator offers the load of one run.
type Generator struct {
	cfg        Config
	publishers []*publish.Publisher
	stopOnce   sync.Once
	stopped    chan struct{}
	walkers    sync.WaitGroup
	walked     chan struct{}
}

// New returns a generator, or an error for an unknown kind of arrivals.
func New(cfg Config) (*Generator, error) {
	if _, err := cfg.process(); err != nil {
		return nil, err
	}
	g := &Generator{cfg: cfg, stopped: make(chan struct{}), walked: make(chan struct{})}
	for i := range cfg.Publishers {
		g.publishers = append(g.publishers, publish.New(publish.Config{
			Name: fmt.Sprintf("spillway-producer-%d", i), Driver: cfg.Driver, Base: cfg.Base, Factory: cfg.Factory,
			Window: cfg.Window, ShedAfter: cfg.ShedAfter, Rate: cfg.Rate / float64(cfg.Publishers),
			Observer: cfg.Observer, Links: cfg.Links,
		}))
	}
	return g, nil
}

func (c *Config) process() (arrival.Process, error) {
	return arrival.New(c.Arrivals, c.Rate, c.Span, c.Seed)
}

// Run offers the whole schedule and returns when every message has its last outcome. Ending ctx is the hard stop; Stop
// is the gentle one.
func (g *Generator) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	g.walkers.Add(len(g.publishers))
	for i, p := range g.publishers {
		group.Go(func() error { return g.walk(ctx, i, p) })
		group.Go(func() error { return p.Run(ctx) })
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

// walk goes through the schedule and hands every arrival of publisher own to it: each takes every n-th, so their phases
// are spread evenly.
func (g *Generator) walk(ctx context.Context, own int, p *publish.Publisher) error {
	defer g.walkers.Done()
	defer p.Finish()
	process, err := g.cfg.process()
	if err != nil {
		return err
	}
	pacer := newPacer(g.cfg.Base, g.stopped)
	defer pacer.close()
	for seq := int64(0); ; seq++ {
		due, more := process.Next()
		if !more {
			return nil
		}
		if seq%int64(len(g.publishers)) != int64(own) {
			continue
		}
		due += g.cfg.Start
		if !pacer.until(ctx, due) {
			return nil
		}
		g.cfg.Lag.Record(g.cfg.Base.Now() - due)
		p.Offer(publish.Arrival{Seq: seq, Scheduled: due, Warmup: due < g.cfg.Start+g.cfg.Warmup})
	}
}

// Late returns how many arrivals were sent late under the bound of the catch-up.
func (g *Generator) Late() (n int64) {
	for _, p := range g.publishers {
		n += p.Late()
	}
	return n
}
