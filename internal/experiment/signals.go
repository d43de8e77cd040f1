package experiment

import (
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/event"
)

// signals counts what an operator would watch and no other part keeps: links, breaker, failures, parking reasons. It
// implements the observers of package event and is safe for concurrent use.
type signals struct {
	event.NopWork
	reconnects   atomic.Int64
	cancels      atomic.Int64
	transient    atomic.Int64 // attempts that failed with a transient error
	breakerOpens atomic.Int64

	mu           sync.Mutex // guards all below
	blocked      stopwatch  // any link blocked
	blockedLinks map[string]bool
	breaker      stopwatch // open or half-open
	breakerState string
	reasons      map[string]int64
}

func newSignals() *signals {
	return &signals{blockedLinks: map[string]bool{}, breakerState: "closed", reasons: map[string]int64{}}
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
		s.blockedLinks[role] = true
	} else {
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
	if e.Result == event.Transient {
		s.transient.Add(1)
	}
}

// Parked implements event.WorkObserver.
func (s *signals) Parked(e event.Parked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reasons[e.Reason]++
}

func (s *signals) breakerNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breakerState
}
