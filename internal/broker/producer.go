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
	// Settled hears the outcome of every publish, several at a time. It must be safe for concurrent use, must not block, and
	// does not keep the slice.
	Settled func([]Settlement)
	Flow    Flow
	// Reconnected is called when an epoch was opened after an earlier one ended.
	Reconnected func()
}

// Producer publishes through one epoch after the other. When an epoch ends it reconnects, with backoff, for as long as
// Run runs. Publishes that an epoch left open are settled as Unknown; publishing them again is the caller's decision.
type Producer struct {
	cfg  ProducerConfig
	turn chan struct{} // held by the one goroutine that writes; a channel, so that waiting for it ends with the context

	// stopped ends with Close or with Run, so that nobody waits for an epoch that will not come.
	stopped context.Context
	stop    context.CancelFunc

	mu      sync.Mutex // guards epoch and changed
	epoch   Publisher  // nil while there is none
	changed chan struct{}
}

// NewProducer returns a producer that has no connection until Run runs.
func NewProducer(cfg ProducerConfig) *Producer {
	p := &Producer{cfg: cfg, turn: make(chan struct{}, 1), changed: make(chan struct{})}
	p.stopped, p.stop = context.WithCancel(context.Background())
	return p
}

// Run keeps an epoch open until ctx ends or Close is called. Ending ctx is the hard stop: the socket is closed and what
// is open settles as Unknown before Run returns. The error is that of the last try to connect when ctx ended without an
// epoch; nil otherwise.
func (p *Producer) Run(ctx context.Context) error {
	defer p.stop()
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.stopped, cancel)() // a Close does not wait for a broker that is away
	for opened := false; ; opened = true {
		epoch, err := p.open(opening)
		if err != nil {
			if ctx.Err() == nil {
				return nil // closed
			}
			return fmt.Errorf("connect %s: %w", p.cfg.Name, err)
		}
		if opened && p.cfg.Reconnected != nil {
			p.cfg.Reconnected()
		}
		if p.serve(ctx, epoch) {
			return nil
		}
	}
}

// open tries until an epoch is open or ctx ends.
func (p *Producer) open(ctx context.Context) (Publisher, error) {
	for tries := 0; ; tries++ {
		epoch, err := p.cfg.Driver.OpenPublisher(ctx, p.cfg.Name, p.cfg.Window, p.cfg.Settled, p.cfg.Flow)
		if err == nil || !Wait(ctx, p.cfg.Backoff.Delay(tries, rand.Float64())) {
			return epoch, err
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
	return ctx.Err() != nil || p.stopped.Err() != nil
}

// Publish writes one message through the present epoch, waiting for one if there is none. After nil, exactly one
// settlement with this token is reported. After an error none is, and nothing was written: ctx ended, or the producer
// stopped. A write that blocks until ctx ends costs the epoch, since nothing can follow half a message; its outcome is
// Unknown. It is safe for concurrent use.
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
	if err := epoch.Publish(ctx, token, m); err != nil { // it may have arrived: unknown
		p.cfg.Settled([]Settlement{{Token: token, Outcome: Unknown, At: time.Now(), Reason: err.Error()}})
	}
	return nil
}

// Close ends the present epoch in an orderly way, bounded by ctx, and lets Run return. Without an epoch it returns at
// once, and a Publish that waits for one returns ErrProducerStopped.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.stop()
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
		epoch, changed := p.epoch, p.changed
		p.mu.Unlock()
		if p.stopped.Err() != nil {
			return nil, ErrProducerStopped
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if epoch != nil {
			return epoch, nil
		}
		select {
		case <-changed:
		case <-p.stopped.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// install makes an epoch the present one, nil for none. It reports false when the producer has stopped.
func (p *Producer) install(epoch Publisher) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch != nil && p.stopped.Err() != nil {
		return false
	}
	p.epoch = epoch
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

// Wait sleeps for d and reports true, or false as soon as ctx ends; false too when both have come.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
