package crew

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/timebase"
	"spillway/workers"
	"spillway/workers/service"
)

// ErrDied is returned for a worker process that ended although nobody had told it to.
var ErrDied = errors.New("a worker process died")

// Config is what Processes needs.
type Config struct {
	Base      *timebase.Base
	Task      Task // its Spec is for all processes together; its Anchor is set here
	Processes int  // at most Task.Spec.Workers.Count
	Observer  event.WorkObserver
	Links     event.LinkObserver
	Breakers  event.BreakerObserver
}

// Processes are the workers of a run in processes of their own. A process that was killed on purpose is replaced at once.
type Processes struct {
	cfg        Config
	executable string
	seats      []*seat
	stopOnce   sync.Once
	stopping   chan struct{}

	mu   sync.Mutex
	next int           // seat of the next kill or freeze; guarded by mu
	died []error       // of processes that ended unasked; guarded by mu
	cpu  time.Duration // that ended processes have used; guarded by mu
}

// seat is the place of one process and, after its death, of the next one.
type seat struct {
	task Task

	mu     sync.Mutex
	now    *process        // nil while there is none; guarded by mu
	window *service.Shares // failure shares in place of the usual ones; guarded by mu
	gone   status          // of processes that are gone, added up; guarded by mu
}

// New returns the processes; Run starts them.
func New(cfg Config) (*Processes, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("worker processes: %w", err)
	}
	p := &Processes{cfg: cfg, executable: executable, stopping: make(chan struct{})}
	cfg.Task.Anchor = anchorOf(cfg.Base)
	for _, spec := range cfg.Task.Spec.split(cfg.Processes) {
		task := cfg.Task
		task.Spec = spec
		p.seats = append(p.seats, &seat{task: task})
	}
	return p, nil
}

// Run keeps every seat taken until Stop was called and what the workers held is settled, or until ctx, the hard stop, ends: then
// the processes are killed.
func (p *Processes) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range p.seats {
		group.Go(func() error { return p.keep(ctx, s) })
	}
	return group.Wait()
}

// Stop lets the workers take nothing new, finish what they hold, and end. It may be called at any time, more than once.
func (p *Processes) Stop() {
	p.stopOnce.Do(func() {
		close(p.stopping)
		for _, s := range p.seats {
			s.tell(order{Stop: true})
		}
	})
}

func (p *Processes) isStopping() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}

// maxDeaths is after how many deaths in a row without an order a seat is given up.
const maxDeaths = 5

// keep starts one process after the other.
func (p *Processes) keep(ctx context.Context, s *seat) error {
	deaths := 0
	for first := true; ctx.Err() == nil && !p.isStopping(); first = false {
		killed, err := p.once(ctx, s, first)
		switch {
		case killed:
			deaths = 0
		case err != nil && ctx.Err() == nil:
			p.bury(err)
			if deaths++; deaths == maxDeaths {
				return err
			}
			broker.Wait(ctx, broker.Reconnect.Delay(deaths, rand.Float64()))
		}
	}
	return nil
}

// once is the life of one process. killed says that it ended on purpose.
func (p *Processes) once(ctx context.Context, s *seat, first bool) (killed bool, err error) {
	c, err := start(p.executable)
	if err != nil {
		return false, fmt.Errorf("start a worker process: %w", err)
	}
	c.told.Store(int64(p.cfg.Base.Now()))
	defer context.AfterFunc(ctx, c.kill)()
	if err := s.take(c); err != nil {
		c.kill()
		err = errors.Join(err, c.wait())
		s.leave()
		return false, err
	}
	if p.isStopping() { // the order may have come before there was anybody to hear it
		s.tell(order{Stop: true})
	}
	if !first {
		p.cfg.Links.Reconnected("worker", p.cfg.Base.Now())
	}
	held := p.listen(s, c)
	err = c.wait()
	p.charge(c)
	s.leave()
	now := p.cfg.Base.Now()
	for seq := range held { // the broker has them again
		p.cfg.Observer.Released(seq, now)
	}
	return c.killed.Load(), err
}

// listen hands the reports of a process to the observers until it ends, and returns what it held then.
func (p *Processes) listen(s *seat, c *process) (held map[int64]struct{}) {
	held = map[int64]struct{}{}
	reports := gob.NewDecoder(c.out)
	for {
		var r report
		if reports.Decode(&r) != nil { // its end, orderly or not: how it ended says wait
			return held
		}
		for i := range r.Notes {
			r.Notes[i].keep(held)
			r.Notes[i].tell(p, c)
		}
		c.told.Store(int64(p.cfg.Base.Now()))
		if r.Status != nil {
			s.note(c, *r.Status)
		}
	}
}

// keep follows what a process holds.
func (n *note) keep(held map[int64]struct{}) {
	switch {
	case n.Delivered != nil:
		held[n.Delivered.Seq] = struct{}{}
	case n.Handled != nil && n.Handled.Result <= event.Duplicate: // a failure goes on: Retried or Parked will say where
		delete(held, n.Handled.Seq)
	case n.Retried != nil:
		delete(held, n.Retried.Seq)
	case n.Parked != nil:
		delete(held, n.Parked.Seq)
	case n.Released != nil:
		delete(held, n.Released.Seq)
	}
}

// tell hands one event to whom it concerns.
func (n *note) tell(p *Processes, c *process) {
	o, links := p.cfg.Observer, p.cfg.Links
	switch {
	case n.Delivered != nil:
		o.Delivered(*n.Delivered)
	case n.Handled != nil:
		o.Handled(*n.Handled)
	case n.Retried != nil:
		o.Retried(*n.Retried)
	case n.Parked != nil:
		o.Parked(*n.Parked)
	case n.Released != nil:
		o.Released(n.Released.Seq, n.Released.At)
	case n.Acked != nil:
		o.Acked(n.Acked.N, n.Acked.At)
	case n.Republished != nil:
		o.Republished(n.Republished.Outcome, n.Republished.At)
	case n.Reconnected != nil:
		links.Reconnected(n.Reconnected.Role, n.Reconnected.At)
	case n.Cancelled != nil:
		links.ConsumerCancelled(n.Cancelled.At)
	case n.Blocked != nil:
		links.Blocked(n.Blocked.Role, n.Blocked.Blocked, n.Blocked.At)
	case n.Breaker != nil:
		p.cfg.Breakers.BreakerChanged(n.Breaker.State, n.Breaker.At)
	case n.Reached != nil:
		c.reach(*n.Reached)
	}
}

// KillAt ends the process of the next seat by SIGKILL, as soon as one of its deliveries has come to the point. It reports false
// when there is no process to end. With an error, or when ctx ends first, nothing was killed.
func (p *Processes) KillAt(ctx context.Context, at workers.Point) (bool, error) {
	s := p.turn()
	c := s.process()
	if c == nil || p.isStopping() {
		return false, nil
	}
	s.tell(order{Arm: at})
	select {
	case <-c.arrived:
		c.killOnPurpose()
		return true, nil
	case <-c.over:
		return false, nil
	case <-ctx.Done():
		s.tell(order{})
		return false, ctx.Err()
	}
}

// turn returns one seat after the other.
func (p *Processes) turn() *seat {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seats[p.next%len(p.seats)]
	p.next++
	return s
}

// ErrNobody is returned when there is no process to do it to.
var ErrNobody = errors.New("no worker process is running")

// Freeze stops the process of the next seat (SIGSTOP). silent tells for how long it has told nothing, where a process that is well
// does so twice a second; release lets it go on.
func (p *Processes) Freeze() (silent func() time.Duration, release func() error, err error) {
	c := p.turn().process()
	if c == nil {
		return nil, nil, ErrNobody
	}
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, nil, fmt.Errorf("freeze a worker process: %w", err)
	}
	silent = func() time.Duration { return p.cfg.Base.Now() - time.Duration(c.told.Load()) }
	return silent, func() error { return c.cmd.Process.Signal(syscall.SIGCONT) }, nil
}

// Deaths returns how each process ended that ended unasked.
func (p *Processes) Deaths() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]error(nil), p.died...)
}

// CPU returns the processor time of the processes that have ended.
func (p *Processes) CPU() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cpu
}

func (p *Processes) bury(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died = append(p.died, err)
}

func (p *Processes) charge(c *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpu += c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// Open puts failure shares in place of the usual ones, also for processes that are started later, until Close.
func (p *Processes) Open(window service.Shares) {
	for _, s := range p.seats {
		s.fail(&window)
	}
}

// Close ends that.
func (p *Processes) Close() {
	for _, s := range p.seats {
		s.fail(nil)
	}
}

// Simulated returns how many attempts the failure model has let fail, as far as the processes have told.
func (p *Processes) Simulated() int64 { return p.status().Simulated }

// Pool returns the state of all pools together, as far as the processes have told.
func (p *Processes) Pool() postgres.PoolStats { return p.status().Pool }

func (p *Processes) status() (sum status) {
	for _, s := range p.seats {
		s.addTo(&sum)
	}
	return sum
}

func (s *seat) take(c *process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = c
	if err := c.orders.Encode(s.task); err != nil {
		return fmt.Errorf("give a worker process its task: %w", err)
	}
	if s.window != nil {
		return c.orders.Encode(order{Fail: s.window})
	}
	return nil
}

// leave empties the seat. What its process has told stays.
func (s *seat) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone.add(&s.now.last)
	s.gone.Pool.Acquired, s.gone.Pool.Idle, s.gone.Pool.Max = 0, 0, 0 // closed with it
	s.now = nil
}

func (s *seat) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// tell gives an order. One that cannot be written is for a process that is gone.
func (s *seat) tell(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		_ = s.now.orders.Encode(o)
	}
}

func (s *seat) fail(window *service.Shares) {
	s.mu.Lock()
	s.window = window
	s.mu.Unlock()
	s.tell(order{Fail: window, Heal: window == nil})
}

func (s *seat) note(c *process, told status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.last = told
}

func (s *seat) addTo(sum *status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.add(&s.gone)
	if s.now != nil {
		sum.add(&s.now.last)
	}
}

func (s *status) add(o *status) {
	s.Simulated += o.Simulated
	p, q := &s.Pool, &o.Pool
	p.Wait += q.Wait
	p.Waits += q.Waits
	p.Acquired += q.Acquired
	p.Idle += q.Idle
	p.Max += q.Max
	p.Opened += q.Opened
}
