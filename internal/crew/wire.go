package crew

import (
	"encoding/gob"
	"io"
	"sync"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/workers"
	"spillway/workers/service"
)

// Between parent and child go two streams of gob values: one Task and then orders to the child, reports from it.

// Task is all that a child needs to work.
type Task struct {
	Spec     Spec
	Anchor   Anchor
	Broker   rabbit.Config // its Dial does not travel
	Vhost    string
	Postgres postgres.Config // its Dial does not travel; an empty URI is no database
}

// order is one word of the parent.
type order struct {
	Stop bool            // finish what is held, and end
	Arm  workers.Point   // the next delivery that comes to the point is kept there and reported; "" is none
	Fail *service.Shares // in place of the usual shares
	Heal bool            // back to them
}

// report is what came of a moment.
type report struct {
	Notes  []note
	Status *status
}

// status is what the child's parent cannot know otherwise.
type status struct {
	Pool      postgres.PoolStats
	Simulated int64 // attempts that the failure model let fail
}

// note is one event: the one that is set.
type note struct {
	Delivered   *event.Delivered
	Handled     *event.Handled
	Retried     *event.Retried
	Parked      *event.Parked
	Released    *released
	Acked       *acked
	Republished *republished
	Reconnected *linkEvent
	Cancelled   *linkEvent
	Blocked     *linkEvent
	Breaker     *breakerEvent
	Reached     *reached
}

type released struct {
	Seq int64
	At  time.Duration
}

type acked struct {
	N  int
	At time.Duration
}

type republished struct {
	Outcome broker.Outcome
	At      time.Duration
}

type linkEvent struct {
	Role    string
	Blocked bool
	At      time.Duration
}

type breakerEvent struct {
	State string
	At    time.Duration
}

type reached struct {
	Point workers.Point
	Seq   int64
}

// flushEvery is how long an event waits for others to travel with: far below what a person or a probe sees.
const flushEvery = 2 * time.Millisecond

// reporter writes a child's events. It implements event.WorkObserver, event.LinkObserver and event.BreakerObserver, and is
// safe for concurrent use. When the parent reads no more, writing fails and the child ends by the end of its input.
type reporter struct {
	writing sync.Mutex // held to encode; taken before mu
	encoder *gob.Encoder

	mu    sync.Mutex
	notes []note        // guarded by mu
	wake  chan struct{} // one token: there are notes
}

func newReporter(w io.Writer) *reporter {
	return &reporter{encoder: gob.NewEncoder(w), wake: make(chan struct{}, 1)}
}

func (r *reporter) add(n note) {
	r.mu.Lock()
	r.notes = append(r.notes, n)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // a token is there already
	}
}

// flush writes what there is. Notes keep their order, whoever writes them.
func (r *reporter) flush(s *status) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	notes := r.notes
	r.notes = nil
	r.mu.Unlock()
	if len(notes) == 0 && s == nil {
		return nil
	}
	return r.encoder.Encode(report{Notes: notes, Status: s})
}

// run writes events as they come, until done is closed.
func (r *reporter) run(done <-chan struct{}) {
	gathered := time.NewTimer(0)
	defer gathered.Stop()
	for {
		select {
		case <-done:
			return
		case <-r.wake:
		}
		gathered.Reset(flushEvery)
		select {
		case <-done:
			return
		case <-gathered.C:
		}
		if r.flush(nil) != nil {
			return
		}
	}
}

// Delivered implements event.WorkObserver.
func (r *reporter) Delivered(e event.Delivered) { r.add(note{Delivered: &e}) }

// Handled implements event.WorkObserver.
func (r *reporter) Handled(e event.Handled) { r.add(note{Handled: &e}) }

// Retried implements event.WorkObserver.
func (r *reporter) Retried(e event.Retried) { r.add(note{Retried: &e}) }

// Parked implements event.WorkObserver.
func (r *reporter) Parked(e event.Parked) { r.add(note{Parked: &e}) }

// Released implements event.WorkObserver.
func (r *reporter) Released(seq int64, at time.Duration) { r.add(note{Released: &released{seq, at}}) }

// Acked implements event.WorkObserver.
func (r *reporter) Acked(n int, at time.Duration) { r.add(note{Acked: &acked{n, at}}) }

// Republished implements event.WorkObserver.
func (r *reporter) Republished(o broker.Outcome, at time.Duration) {
	r.add(note{Republished: &republished{o, at}})
}

// Reconnected implements event.LinkObserver.
func (r *reporter) Reconnected(role string, at time.Duration) {
	r.add(note{Reconnected: &linkEvent{Role: role, At: at}})
}

// ConsumerCancelled implements event.LinkObserver.
func (r *reporter) ConsumerCancelled(at time.Duration) { r.add(note{Cancelled: &linkEvent{At: at}}) }

// Blocked implements event.LinkObserver.
func (r *reporter) Blocked(role string, blocked bool, at time.Duration) {
	r.add(note{Blocked: &linkEvent{role, blocked, at}})
}

// BreakerChanged implements event.BreakerObserver.
func (r *reporter) BreakerChanged(state string, at time.Duration) {
	r.add(note{Breaker: &breakerEvent{state, at}})
}
