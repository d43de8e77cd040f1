package experiment

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/workers/retry"
)

// signals counts what an operator would watch and no other part keeps: links, breaker, failures, parking reasons. It
// implements the observers of package event and is safe for concurrent use.
type signals struct {
	event.NopWork
	reconnects   atomic.Int64
	cancels      atomic.Int64
	transient    atomic.Int64 // attempts that failed with a transient error of the database's own
	returns      atomic.Int64 // deliveries with an attempt above 1
	breakerOpens atomic.Int64
	// copiesRefused counts publishes of the workers that were returned or nacked.
	copiesRefused atomic.Int64
	confirms      silence // of the broker towards the producer
	effects       silence // of the database towards the handlers

	mu           sync.Mutex     // guards all below
	blocked      stopwatch      // any link blocked
	blockedLinks map[string]int // by role, how many are blocked
	breaker      stopwatch      // open or half-open
	breakerState string
	reasons      map[string]int64
	keepParked   bool // whether parked is kept: only a parking lot that lets messages expire needs it
	parked       []parked
}

type parked struct {
	seq int64
	at  time.Duration
}

func newSignals(keepParked bool) *signals {
	return &signals{
		blockedLinks: map[string]int{}, breakerState: "closed", reasons: map[string]int64{}, keepParked: keepParked,
	}
}

// stopwatch sums the time during which something holds.
type stopwatch struct {
	running bool
	since   time.Duration
	total   time.Duration
}

func (s *stopwatch) set(on bool, at time.Duration) {
	if s.running && !on {
		s.total += at - s.since
	}
	if !s.running && on {
		s.since = at
	}
	s.running = on
}

func (s *stopwatch) sum(now time.Duration) time.Duration {
	if s.running {
		return s.total + now - s.since
	}
	return s.total
}

// Reconnected implements event.LinkObserver.
func (s *signals) Reconnected(string, time.Duration) { s.reconnects.Add(1) }

// ConsumerCancelled implements event.LinkObserver.
func (s *signals) ConsumerCancelled(time.Duration) { s.cancels.Add(1) }

// Blocked implements event.LinkObserver: the time counts once, however many links are blocked.
func (s *signals) Blocked(role string, blocked bool, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocked {
		s.blockedLinks[role]++
	} else if s.blockedLinks[role]--; s.blockedLinks[role] <= 0 {
		delete(s.blockedLinks, role)
	}
	s.blocked.set(len(s.blockedLinks) > 0, at)
}

// BreakerChanged implements event.BreakerObserver.
func (s *signals) BreakerChanged(state string, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == "open" {
		s.breakerOpens.Add(1)
	}
	s.breakerState = state
	s.breaker.set(state != "closed", at)
}

// Handled implements event.WorkObserver.
func (s *signals) Handled(e event.Handled) {
	if e.Result == event.Transient && !e.Simulated {
		s.transient.Add(1)
	}
	s.effects.heard(e.Finished)
}

// Republished implements event.WorkObserver.
func (s *signals) Republished(outcome broker.Outcome, _ time.Duration) {
	if outcome == broker.Returned || outcome == broker.Nacked {
		s.copiesRefused.Add(1)
	}
}

// Delivered implements event.WorkObserver.
func (s *signals) Delivered(e event.Delivered) {
	if e.Attempt > 1 {
		s.returns.Add(1)
	}
}

// Parked implements event.WorkObserver.
func (s *signals) Parked(e event.Parked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reasons[e.Reason]++
	if s.keepParked {
		s.parked = append(s.parked, parked{e.Seq, e.At})
	}
}

func (s *signals) breakerNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breakerState
}

// blockedFor returns for how long a producing link was blocked so far.
func (s *signals) blockedFor(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked.sum(now)
}

// breakerOpenFor returns for how long the breaker was not closed so far.
func (s *signals) breakerOpenFor(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breaker.sum(now)
}

// parkedBy returns the parked messages by every reason there is, as the workers told.
func (s *signals) parkedBy() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.reasons)
	for _, reason := range retry.Reasons() {
		all[string(reason)] += 0 // so that none parked reads as none, not as unknown
	}
	return all
}

// eachParked calls f for every message that was parked, when these are kept.
func (s *signals) eachParked(f func(seq int64, at time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parked {
		f(p.seq, p.at)
	}
}
