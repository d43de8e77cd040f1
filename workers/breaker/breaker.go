// Package breaker is the circuit breaker in front of the handlers: while what they depend on fails, it stops messages
// from being taken, so that an outage burns no attempts.
//
//	          failure ratio reached                OpenFor is over
//	closed -------------------------->  open  ------------------------>  half-open
//	  ^                                   ^                                |    |
//	  |                                   |        one probe failed        |    |
//	  |                                   +--------------------------------+    |
//	  |                            every probe succeeded                        |
//	  +-------------------------------------------------------------------------+
//
// A caller asks Allow before it starts a handler and gives the ticket back once, with Done or Cancel. Every change of
// state begins a generation, and a ticket of an older one is worth nothing: a handler that started before the breaker
// opened cannot close it, nor open it again. What counts as a failure is the caller's choice; a message's own fault,
// a permanent failure or a refusal, says nothing about the database and should be reported as a success.
//
// The package is pure: it holds no clock, no lock and no goroutine, and now is an argument everywhere, an offset on one
// monotonic base. A now below an earlier one counts as the earlier one, since callers on several threads may read the
// clock in one order and arrive in another. It is a leaf, and the simulator runs it as it is.
//
// Invariants: while open no ticket is given; while half-open at most Probes tickets are out, and no more than Probes
// handlers succeed before it closes.
package breaker

import "time"

// Settings of a breaker. Values that make no sense are taken to the nearest that do: a breaker opens on at least one
// failure and closes on at least one probe.
type Settings struct {
	FailureRatio float64       // opens when failures / results in the window reach it; 0 opens on the first failure
	Window       time.Duration // how far back results count; in ten buckets, so the oldest tenth leaves at once
	MinSamples   int           // and only with at least so many results in the window
	OpenFor      time.Duration // how long it stays open before it probes
	Probes       int           // handlers let through while half-open; all must succeed to close
}

// State of a breaker. The zero value is Closed, as a breaker begins.
type State uint8

// States.
const (
	Closed State = iota
	Open
	HalfOpen
)

// States lists every state, in the order in which they are reported.
var States = [...]State{Closed, Open, HalfOpen}

// String returns the name used in events and metric labels; "invalid" beyond the set.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	default:
		return "invalid"
	}
}

// Ticket is the right to run one handler. The zero value is no right: Done and Cancel ignore it.
type Ticket struct {
	generation uint64 // from 1
	number     uint64 // from 1 within a breaker
}

// Breaker is one circuit breaker; call New. It is not safe for concurrent use: whoever shares it holds a lock.
type Breaker struct {
	settings   Settings
	state      State
	generation uint64
	tickets    uint64 // numbers given so far
	window     window // of the closed state
	probes     []probe
	now        time.Duration // the latest seen
	openedAt   time.Duration // when it last left closed, or last reopened
	brokenAt   time.Duration // when it last left closed
	broken     time.Duration // total time away from closed, up to the last close
	opens      int
}

// probe is one of the places of the half-open state.
type probe struct {
	number    uint64 // of the ticket that holds the place; 0 is free
	succeeded bool
}

// New returns a closed breaker in generation 1.
func New(s Settings) *Breaker {
	s.MinSamples = max(s.MinSamples, 1)
	s.Probes = max(s.Probes, 1)
	s.OpenFor = max(s.OpenFor, 0)
	return &Breaker{settings: s, generation: 1, window: newWindow(s.Window), probes: make([]probe, s.Probes)}
}

// Allow asks for the right to run one handler. Without it, wait says how long it takes at least until asking again is
// worth while; 0 means that this is not known: every probe is out, so ask after the next Done or Cancel.
func (b *Breaker) Allow(now time.Duration) (t Ticket, ok bool, wait time.Duration) {
	b.advance(now)
	switch b.state {
	case Open:
		return Ticket{}, false, b.openedAt + b.settings.OpenFor - b.now
	case HalfOpen:
		place := b.free()
		if place == nil {
			return Ticket{}, false, 0
		}
		t = b.ticket()
		place.number = t.number
		return t, true, 0
	default:
		return b.ticket(), true, 0
	}
}

// Done reports how the handler ended. It is called once for a ticket whose handler ran; the results of an older
// generation are ignored.
func (b *Breaker) Done(t Ticket, success bool, now time.Duration) {
	b.advance(now)
	if t.generation != b.generation {
		return
	}
	if b.state == HalfOpen {
		b.probed(t, success)
		return
	}
	b.window.add(b.now, success)
	if !success && b.window.failing(b.settings) {
		b.brokenAt = b.now
		b.open()
	}
}

// Cancel gives a ticket back whose handler never ran, and a probe's place with it.
func (b *Breaker) Cancel(t Ticket, now time.Duration) {
	b.advance(now)
	if place := b.held(t); place != nil {
		*place = probe{}
	}
}

// State returns the state at now.
func (b *Breaker) State(now time.Duration) State {
	b.advance(now)
	return b.state
}

// Opens returns how often it opened, from closed and from half-open alike.
func (b *Breaker) Opens() int { return b.opens }

// OpenFor returns the total time that it has been open or half-open, up to now.
func (b *Breaker) OpenFor(now time.Duration) time.Duration {
	b.advance(now)
	if b.state == Closed {
		return b.broken
	}
	return b.broken + b.now - b.brokenAt
}

// Generation returns the number of the current generation: 1, and one more with every change of state. It is that of
// the last call with a now, since the step from open to half-open is seen only then.
func (b *Breaker) Generation() uint64 { return b.generation }

// advance moves the clock, and from open to half-open when the time has come.
func (b *Breaker) advance(now time.Duration) {
	b.now = max(b.now, now)
	if b.state == Open && b.now-b.openedAt >= b.settings.OpenFor {
		b.change(HalfOpen)
	}
}

func (b *Breaker) change(to State) {
	b.state = to
	b.generation++
	clear(b.probes)
}

func (b *Breaker) open() {
	b.openedAt = b.now
	b.opens++
	b.change(Open)
}

func (b *Breaker) close() {
	b.broken += b.now - b.brokenAt
	b.window = newWindow(b.settings.Window) // what failed before the outage ended must not open it again
	b.change(Closed)
}

// probed takes the result of a probe.
func (b *Breaker) probed(t Ticket, success bool) {
	place := b.held(t)
	switch {
	case place == nil: // reported before
	case !success:
		b.open()
	default:
		place.succeeded = true
		if b.allSucceeded() {
			b.close()
		}
	}
}

func (b *Breaker) ticket() Ticket {
	b.tickets++
	return Ticket{generation: b.generation, number: b.tickets}
}

// free returns a place that no probe holds, nil when there is none.
func (b *Breaker) free() *probe {
	for i := range b.probes {
		if b.probes[i].number == 0 {
			return &b.probes[i]
		}
	}
	return nil
}

// held returns the place of a probe that is out, nil for any other ticket.
func (b *Breaker) held(t Ticket) *probe {
	if b.state != HalfOpen || t.generation != b.generation {
		return nil
	}
	for i := range b.probes {
		if p := &b.probes[i]; p.number == t.number && !p.succeeded {
			return p
		}
	}
	return nil
}

func (b *Breaker) allSucceeded() bool {
	for _, p := range b.probes {
		if !p.succeeded {
			return false
		}
	}
	return true
}
