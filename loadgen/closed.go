package loadgen

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/timebase"
	"spillway/loadgen/publish"
)

// ClosedConfig is what a Closed load needs.
type ClosedConfig struct {
	Base    *timebase.Base
	Start   time.Duration // offset of the first message on Base
	Warmup  time.Duration // messages before Start + Warmup are warm-up
	Span    time.Duration // of the whole, warm-up included
	Fillers []Filler      // at least one; they share one sequence
}

// Filler keeps a full window towards the broker: a publish.Publisher. It returns when the supply has ended and every
// message has its last outcome, or when ctx, the hard stop, ends.
type Filler interface {
	Fill(ctx context.Context, s *publish.Supply) error
}

// Closed is the load without a schedule: as much as the broker takes. It finds a ceiling, and its latencies say little: a
// broker that stalls also stalls the load, so they leave out exactly the messages that a stall would have hurt.
type Closed struct {
	cfg    ClosedConfig
	supply *publish.Supply
}

// NewClosed returns a closed load.
func NewClosed(cfg ClosedConfig) *Closed {
	return &Closed{cfg: cfg, supply: publish.NewSupply(cfg.Base, cfg.Start, cfg.Warmup, cfg.Span)}
}

// Run offers for the whole span and returns when every message has its last outcome. Ending ctx is the hard stop; Stop is
// the gentle one.
func (c *Closed) Run(ctx context.Context) error {
	timer := time.AfterFunc(c.cfg.Start+c.cfg.Span-c.cfg.Base.Now(), c.supply.End) // a broker that stalls cannot prolong the load
	defer timer.Stop()
	defer c.supply.End()
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range c.cfg.Fillers {
		group.Go(func() error { return f.Fill(ctx, c.supply) })
	}
	return group.Wait()
}

// Walked is closed when no more messages come.
func (c *Closed) Walked() <-chan struct{} { return c.supply.Ended() }

// Stop ends the offering; what was offered so far is still taken to its last outcome. It may be called at any time, more
// than once.
func (c *Closed) Stop() { c.supply.End() }
