package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrProducerStopped is returned by Producer.Publish when the producer stopped before anything was written.
var ErrProducerStopped = errors.New("the producer has stopped")

// ProducerConfig is what a Producer needs.
type ProducerConfig struct {
	Driver  Driver
	Name    string // the connection's name at the broker
	Window  int    // unsettled publishes; see Driver.OpenPublisher
	Backoff Backoff
	// Settled hears the outcome of every publish. It must be safe for concurrent use and must not block.
	Settled func(Settlement)
	Flow    Flow
	// Reconnected is called when an epoch was opened after an earlier one ended.
	Reconnected func()
}

// Producer publishes through one epoch after the other. When an epoch ends it reconnects, with backoff, for as long as
// Run runs. Publishes that an epoch left open are settled as Unknown; publishing them again is the caller's decision.
type Producer struct {
	cfg  ProducerConfig
	turn chan struct{} // held by the one goroutine that writes; a channel, so that waiting for it ends with the context

	mu      sync.Mutex // guards epoch, changed and stopped
	epoch   Publisher  // nil while there is none
	changed chan struct{}
	stopped bool
}

// NewProducer returns a producer that has no connection until Run runs.
func NewProducer(cfg ProducerConfig) *Producer {
	return &Producer{cfg: cfg, turn: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Run keeps an epoch open until ctx ends or Close is called. Ending ctx is the hard stop: the socket is closed and what
// is open settles as Unknown before Run returns.
func (p *Producer) Run(ctx context.Context) error {
	defer p.stop()
	tries := 0
	for first := true; ; first = false {
		epoch, err := p.cfg.Driver.OpenPublisher(ctx, p.cfg.Name, p.cfg.Window, p.cfg.Settled, p.cfg.Flow)
		if err != nil {
			if !Wait(ctx, p.cfg.Backoff.Delay(tries, rand.Float64())) {
				return fmt.Errorf("connect %s: %w", p.cfg.Name, err)
			}
			tries++
			continue
		}
		tries = 0
		if !first && p.cfg.Reconnected != nil {
			p.cfg.Reconnected()
		}
		if p.serve(ctx, epoch) {
			return nil
		}
	}
}

// serve offers one epoch to publishers until it ends, and reports whether the producer is through.
func (p *Producer) serve(ctx context.Context, epoch Publisher) (through bool) {
	if !p.install(epoch) {
		epoch.Abort()
		<-epoch.Done()
		return true
	}
	select {
	case <-epoch.Done():
	case <-ctx.Done():
		epoch.Abort()
		<-epoch.Done()
	}
	p.install(nil)
	return ctx.Err() != nil || p.isStopped()
}

// Publish writes one message through the present epoch, waiting for one if there is none. After nil, exactly one
// settlement with this token is reported. After an error none is, and nothing was written: ctx ended, or the producer
// stopped. It is safe for concurrent use.
func (p *Producer) Publish(ctx context.Context, token uint64, m *Message) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	epoch, err := p.current(ctx)
	if err != nil {
		return err
	}
	if err := epoch.Publish(token, m); err != nil { // it may have arrived: unknown
		p.cfg.Settled(Settlement{Token: token, Outcome: Unknown, At: time.Now(), Reason: err.Error()})
	}
	return nil
}

// Close ends the present epoch in an orderly way, bounded by ctx, and lets Run return.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.stopped = true
	epoch := p.epoch
	p.mu.Unlock()
	if epoch == nil {
		return nil
	}
	return epoch.Close(ctx)
}

// current returns the open epoch, waiting for one.
func (p *Producer) current(ctx context.Context) (Publisher, error) {
	for {
		p.mu.Lock()
		epoch, changed, stopped := p.epoch, p.changed, p.stopped
		p.mu.Unlock()
		if stopped {
			return nil, ErrProducerStopped
		}
		if epoch != nil {
			return epoch, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// install makes an epoch the present one, nil for none. It reports false when the producer has stopped.
func (p *Producer) install(epoch Publisher) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch != nil && p.stopped {
		return false
	}
	p.epoch = epoch
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

func (p *Producer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Producer) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// Wait sleeps for d and reports true, or false as soon as ctx ends.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
