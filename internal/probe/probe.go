// Package probe samples a run on its own time base: ages and places from the ledger ten times a second, depths from the
// broker once a second. It decides nothing; what it sees goes to a Listener and into the ages of the result.
package probe

import (
	"context"
	"sync"
	"time"

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
	var group sync.WaitGroup
	group.Go(func() { every(ctx, viewInterval, p.view) })
	if p.cfg.Depths != nil {
		group.Go(func() { every(ctx, depthInterval, func() { p.measure(ctx) }) })
	}
	group.Wait()
}

// every calls f at each tick until ctx ends; ticks that f is too slow for are left out.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}

func (p *Probe) view() {
	v := p.cfg.View(p.cfg.Base.Now())
	p.ages.add(v)
	p.cfg.Listen.Viewed(v)
}

// measure asks for the depths. A broker that cannot answer leaves a gap; the links tell of its absence.
func (p *Probe) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, depthTimeout)
	defer cancel()
	ready, err := p.cfg.Depths(ctx)
	if err == nil {
		p.cfg.Listen.Measured(Depths{At: p.cfg.Base.Now(), Ready: ready})
	}
}
