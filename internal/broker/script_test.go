package broker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
)

var errRefused = errors.New("refused")

// script is a driver that does what a test says; the real one has tests on a real broker. It serves the supervision alone.
type script struct {
	opened chan *epoch // every epoch that was opened

	mu    sync.Mutex
	away  bool // OpenPublisher fails while set
	hang  bool // OpenPublisher hangs until its context ends
	tries []time.Time
}

func newScript() *script { return &script{opened: make(chan *epoch, 100)} }

func (s *script) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *script) tried() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.tries...)
}

// OpenPublisher implements broker.Driver.
func (s *script) OpenPublisher(ctx context.Context, _ string, window int, settled func([]broker.Settlement), _ broker.Flow) (broker.Publisher, error) {
	s.mu.Lock()
	away, hang := s.away, s.hang
	s.tries = append(s.tries, time.Now())
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if away {
		return nil, errRefused
	}
	e := &epoch{window: window, settled: settled, done: make(chan struct{})}
	s.opened <- e
	return e, nil
}

// OpenConsumer implements broker.Driver.
func (s *script) OpenConsumer(context.Context, string, broker.ConsumerOptions) (broker.Consumer, error) {
	return nil, errRefused
}

// epoch confirms at once what it is given, unless it is told to keep it open, to refuse it or to block.
type epoch struct {
	window  int
	settled func([]broker.Settlement)

	mu      sync.Mutex
	open    []uint64
	keep    bool
	refuse  bool
	block   bool
	writers int // inside Publish, now
	most    int // inside Publish, at most
	wrote   []uint64

	once    sync.Once
	done    chan struct{}
	aborted atomic.Bool
	closed  atomic.Bool
}

func (e *epoch) Publish(ctx context.Context, token uint64, _ *broker.Message) error {
	e.mu.Lock()
	e.writers++
	e.most = max(e.most, e.writers)
	keep, refuse, block := e.keep, e.refuse, e.block
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.writers--
		e.mu.Unlock()
	}()
	time.Sleep(time.Millisecond) // on the bubble's clock: lets two writers meet if they can
	if block {
		defer context.AfterFunc(ctx, e.Abort)()
		<-e.done
		return broker.ErrClosed
	}
	if refuse {
		return errRefused
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote = append(e.wrote, token)
	if keep {
		e.open = append(e.open, token)
		return nil
	}
	e.settled([]broker.Settlement{{Token: token, Outcome: broker.Confirmed, At: time.Now()}})
	return nil
}

// end settles what is open as Unknown, as the port demands, and then closes Done.
func (e *epoch) end() {
	e.once.Do(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, token := range e.open {
			e.settled([]broker.Settlement{{Token: token, Outcome: broker.Unknown, At: time.Now()}})
		}
		close(e.done)
	})
}

func (e *epoch) Done() <-chan struct{} { return e.done }
func (e *epoch) Err() error            { return nil }

// Abort does not block: the epoch is over a moment later.
func (e *epoch) Abort() {
	e.aborted.Store(true)
	go func() {
		time.Sleep(time.Millisecond)
		e.end()
	}()
}

func (e *epoch) Close(context.Context) error {
	e.closed.Store(true)
	e.end()
	return nil
}

func (e *epoch) set(change func(*epoch)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// supervised is a producer that runs on a script, and what was settled.
type supervised struct {
	*broker.Producer
	script      *script
	reconnected atomic.Int64
	ended       chan error

	mu      sync.Mutex
	settled map[uint64][]broker.Outcome
}

var backoff = broker.Backoff{Min: 100 * time.Millisecond, Max: 800 * time.Millisecond}

// supervise runs a producer in the bubble. It must have ended before the test does, or the bubble fails the test.
func supervise(ctx context.Context, s *script) *supervised {
	p := &supervised{script: s, ended: make(chan error, 1), settled: map[uint64][]broker.Outcome{}}
	p.Producer = broker.NewProducer(broker.ProducerConfig{
		Driver: s, Name: "p", Window: 7, Backoff: backoff, Reconnected: func() { p.reconnected.Add(1) },
		Settled: func(batch []broker.Settlement) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, e := range batch {
				p.settled[e.Token] = append(p.settled[e.Token], e.Outcome)
			}
		},
	})
	go func() { p.ended <- p.Run(ctx) }()
	return p
}

func (p *supervised) outcomes(token uint64) []broker.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled[token]
}
