// Package workers is the service side: N workers take deliveries, handle each in a transaction, and settle it. What a
// delivery may become follows the rules of the design: acked only after COMMIT, or after the broker took the copy that
// replaces it.
//
// A worker is one connection, one channel and one goroutine that owns both (session); its handlers are a fixed set of
// goroutines. One gate (rate limit, circuit breaker) and one republisher (retries, parkings) serve all workers.
//
// workers knows neither the load side nor a concrete broker driver.
package workers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/workers/breaker"
	"spillway/workers/inbox"
	"spillway/workers/retry"
	"spillway/workers/service"
)

// Config is what a Service needs. The caller validates it; see package profile for ranges.
type Config struct {
	Base        *timebase.Base
	Driver      broker.Driver
	Version     string        // of this build, for the failure metadata
	MeasureFrom time.Duration // messages due before this are warm-up
	Seed        uint64

	Run         string // messages of another run keep no sequence here; "" takes all
	Queue       string
	Workers     int
	First       int // number of the first worker, where several processes share them
	Prefetch    int
	Concurrency int           // handlers per worker, at most Prefetch
	AckBatch    int           // finished deliveries that make a flush, at most Prefetch
	AckInterval time.Duration // after which a partial batch is flushed
	Ack         Ack

	HandlerTimeout      time.Duration
	RetryPublishTimeout time.Duration
	RateLimit           float64           // handler starts per second, 0 for none
	Breaker             *breaker.Settings // nil for none
	Inbox               inbox.Inbox
	ServiceTime         service.Time
	Failing             *Failing
	Budget              *retry.Budget
	Tokens              retry.TokenSettings
	Routes              Routes
	Park                Park
	Again               Again
	Sleep               bool // a handler holds what it is to return for the delay, and only then returns it
	Expire              bool // a copy carries its delay as a TTL of its own

	Reached func(p Point, seq int64) // hears of every delivery that comes to a point, and may keep it there; nil is nobody

	Observer event.WorkObserver
	Links    event.LinkObserver
	Breakers event.BreakerObserver
}

// Service runs the workers of one process.
type Service struct {
	cfg         Config
	gate        *gate
	handler     *handler
	republisher *republisher
	tokens      *retry.Tokens
	stopOnce    sync.Once
	stopping    chan struct{}
}

// New returns a service; nothing is connected until Run.
func New(cfg Config) *Service {
	return &Service{
		cfg:  cfg,
		gate: newGate(cfg.Base, cfg.Breakers, limiter(cfg.RateLimit), newBreaker(cfg.Breaker)),
		handler: &handler{
			base: cfg.Base, inbox: cfg.Inbox, time: cfg.ServiceTime, failing: cfg.Failing, timeout: cfg.handlerTimeout(),
		},
		republisher: newRepublisher(cfg.Base, cfg.Driver, cfg.Workers*cfg.Concurrency, cfg.Observer, cfg.Links),
		tokens:      retry.NewTokens(cfg.Tokens),
		stopping:    make(chan struct{}),
	}
}

// handlerTimeout returns the bound of one attempt, 0 for none: without an inbox and a service time a handler waits for
// nothing, and the timer would be most of what it costs.
func (c *Config) handlerTimeout() time.Duration {
	if _, none := c.Inbox.(inbox.None); none && c.ServiceTime.IsZero() {
		return 0
	}
	return c.HandlerTimeout
}

func newBreaker(s *breaker.Settings) *breaker.Breaker {
	if s == nil {
		return nil
	}
	return breaker.New(*s)
}

// limiter allows no burst beyond 10 ms of its rate: a database that is to be spared is not spared by bursts.
func limiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/100)))
}

// Run runs the workers until Stop was called and everything held is settled, or until ctx, the hard stop, ends: then
// sockets are closed and what is unsettled goes back to the queue.
func (s *Service) Run(ctx context.Context) error {
	link, unlink := context.WithCancel(ctx)
	defer unlink()
	var republishing errgroup.Group
	republishing.Go(func() error { return s.republisher.run(link) })

	group, ctx := errgroup.WithContext(ctx)
	for i := range s.cfg.Workers {
		w := &worker{service: s, name: fmt.Sprintf("spillway-worker-%d", s.cfg.First+i)}
		group.Go(func() error { return w.run(ctx) })
	}
	err := group.Wait()
	unlink()
	_ = republishing.Wait() // it ends with link; its error is that end
	return err
}

// Stop lets the workers take nothing new, finish what they hold, flush their acks and return from Run. It may be called
// at any time, more than once.
func (s *Service) Stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// attempt runs one delivery through gate and handler and finds its settlement. abort is the hard stop, channel ends with
// the delivery's channel; commit is called before the COMMIT, nil is nobody.
func (s *Service) attempt(abort, channel context.Context, d *broker.Delivery, commit func()) settlement {
	pass, err := s.gate.enter(channel)
	if err != nil {
		return release
	}
	started := s.cfg.Base.Now()
	if d.Headers.Retries == 0 {
		s.tokens.First(started)
	}
	h := s.handler.handle(inbox.BeforeCommit(abort, commit), d)
	finished := s.cfg.Base.Now()
	if h.dead {
		pass.withdraw()
		return requeue
	}
	switch h.result {
	case event.Applied, event.Refused, event.Duplicate:
		pass.report(true)
	case event.Transient:
		pass.report(false)
	default: // bad data and defects of the handler say nothing about the database
		pass.withdraw()
	}
	if abort.Err() != nil && h.class != 0 {
		return release // cut off by the hard stop: no attempt of the message's own
	}
	s.cfg.Observer.Handled(event.Handled{
		Seq: d.Headers.Seq, Attempt: d.Headers.Attempt(), Scheduled: s.cfg.Base.FromMicros(d.Headers.ScheduledAt),
		SentAt: s.cfg.Base.FromMicros(d.Headers.SentAt), Started: started, Finished: finished, Result: h.result, Simulated: h.simulated,
		Warmup: s.cfg.Base.FromMicros(d.Headers.ScheduledAt) < s.cfg.MeasureFrom,
	})
	if h.class == 0 {
		s.reached(AfterCommit, d.Headers.Seq)
	}
	return s.settle(channel, d, h)
}
