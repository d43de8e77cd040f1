// Package probe samples a run on its own time base: ages and places from the ledger ten times a second, depths from the
// broker once a second. It decides nothing; what it sees goes to a Listener and into the ages of the result.
package probe

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/ledger"
	"spillway/internal/timebase"
)

// Intervals of sampling. Ages are promised within 100 ms; depths cost the broker a passive declare for each queue.
const (
	viewInterval  = 100 * time.Millisecond
	depthInterval = time.Second
)

// depthTimeout bounds one round of depths: a broker that is away must not hold up the next rounds.
const depthTimeout = 2 * time.Second

// Depths is what the broker says lies ready in each queue.
type Depths struct {
	At    time.Duration
	Ready map[string]int // by queue name
}

// Listener hears what the probe sees. Calls of one method come one after the other.
type Listener interface {
	Viewed(ledger.View)
	Measured(Depths)
}

// Config is what a Probe needs.
type Config struct {
	Base   *timebase.Base
	View   func(now time.Duration) ledger.View
	Depths func(ctx context.Context) (map[string]int, error) // ready messages by queue; nil when nobody can say
	Listen Listener
}

// Probe samples one run.
type Probe struct {
	cfg  Config
	ages *Ages
}

// New returns a probe that begins when Run does.
func New(cfg Config) *Probe { return &Probe{cfg: cfg, ages: newAges()} }

// Ages returns the ages seen so far; read them after Run has returned.
func (p *Probe) Ages() *Ages { return p.ages }

// Run samples until ctx ends.
func (p *Probe) Run(ctx context.Context) {
	var group errgroup.Group
	group.Go(func() error { return p.watch(ctx) })
	if p.cfg.Depths != nil {
		group.Go(func() error { return p.measure(ctx) })
	}
	_ = group.Wait() // both end with ctx and have no other error
}

func (p *Probe) watch(ctx context.Context) error {
	ticker := time.NewTicker(viewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			v := p.cfg.View(p.cfg.Base.Now())
			p.ages.add(v)
			p.cfg.Listen.Viewed(v)
		}
	}
}

func (p *Probe) measure(ctx context.Context) error {
	ticker := time.NewTicker(depthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.measureOnce(ctx)
		}
	}
}

// measureOnce asks for the depths. A broker that cannot answer leaves a gap; the links tell of its absence.
func (p *Probe) measureOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, depthTimeout)
	defer cancel()
	ready, err := p.cfg.Depths(ctx)
	if err == nil {
		p.cfg.Listen.Measured(Depths{At: p.cfg.Base.Now(), Ready: ready})
	}
}
