package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"spillway/workers/breaker"
)

// model plays random callers against a breaker and checks what must always hold.
type model struct {
	t         *testing.T
	b         *breaker.Breaker
	now       time.Duration
	gen       uint64
	started   []breaker.Ticket // handlers that run now, of any generation
	out       int              // of them, probes of this generation
	succeeded int              // probes of this generation
}

const modelProbes = 3

// step performs one action named by op.
func (m *model) step(op byte) {
	switch op % 8 {
	case 0, 1, 2:
		m.allow()
	case 3, 4:
		m.end(op, true)
	case 5:
		m.end(op, false)
	case 6:
		m.cancel(op)
	default:
		m.now += time.Duration(op) * 10 * time.Millisecond
	}
	m.settle()
}

func (m *model) allow() {
	ticket, ok, wait := m.b.Allow(m.now)
	m.settle()
	state := m.b.State(m.now)
	if state == breaker.Open && (ok || wait <= 0) {
		m.t.Fatalf("open: allowed %v, wait %s", ok, wait)
	}
	if state == breaker.Closed && !ok {
		m.t.Fatal("closed: refused")
	}
	if state == breaker.HalfOpen && ok != (m.out+m.succeeded < modelProbes) {
		m.t.Fatalf("half-open with %d probes out and %d succeeded: allowed %v", m.out, m.succeeded, ok)
	}
	if ok {
		m.started = append(m.started, ticket)
		if state == breaker.HalfOpen {
			m.out++
		}
	}
}

func (m *model) end(op byte, success bool) {
	if ticket, probe, ok := m.take(op); ok {
		before := m.b.State(m.now)
		m.b.Done(ticket, success, m.now)
		if probe {
			m.out--
			m.succeeded++
		}
		m.checkStep(before, probe, success)
	}
}

// checkStep holds a result to the changes of state that it may cause.
func (m *model) checkStep(before breaker.State, probe, success bool) {
	after := m.b.State(m.now)
	switch {
	case before == breaker.HalfOpen && !probe && after != before:
		m.t.Fatal("half-open: the result of an older handler changed the state")
	case before == breaker.HalfOpen && probe && !success && after != breaker.Open:
		m.t.Fatalf("half-open: a probe failed and it is %s", after)
	case before == breaker.HalfOpen && probe && success && (after == breaker.Closed) != (m.succeeded == modelProbes):
		m.t.Fatalf("half-open: %d probes succeeded and it is %s", m.succeeded, after)
	case before == breaker.Open && after != before:
		m.t.Fatalf("open: a result made it %s", after)
	}
}

func (m *model) cancel(op byte) {
	if ticket, probe, ok := m.take(op); ok {
		m.b.Cancel(ticket, m.now)
		if probe {
			m.out--
		}
	}
}

// take removes one running handler, and says whether it is a probe of this generation.
func (m *model) take(op byte) (ticket breaker.Ticket, probe, ok bool) {
	m.settle()
	if len(m.started) == 0 {
		return ticket, false, false
	}
	i := int(op) * 7 % len(m.started)
	ticket = m.started[i]
	m.started = append(m.started[:i], m.started[i+1:]...)
	current := breaker.TicketGeneration(ticket) == m.b.Generation()
	return ticket, current && m.b.State(m.now) == breaker.HalfOpen, true
}

// settle starts the counts anew when a generation has begun.
func (m *model) settle() {
	m.b.State(m.now)
	if m.gen != m.b.Generation() {
		m.gen, m.out, m.succeeded = m.b.Generation(), 0, 0
	}
	if m.out > modelProbes {
		m.t.Fatalf("%d probes are out", m.out)
	}
}

func play(t *testing.T, ops []byte) {
	t.Helper()
	m := &model{t: t, gen: 1, b: breaker.New(breaker.Settings{
		FailureRatio: 0.3, Window: 2 * time.Second, MinSamples: 3, OpenFor: 500 * time.Millisecond, Probes: modelProbes,
	})}
	for _, op := range ops {
		m.step(op)
	}
	if total := m.b.OpenFor(m.now); total < 0 || total > m.now {
		t.Fatalf("open for %s of %s", total, m.now)
	}
}

func TestItsInvariantsHoldForRandomCallers(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		ops := make([]byte, 400)
		for i := range ops {
			ops[i] = byte(draw.IntN(256))
		}
		play(t, ops)
	}
}

func FuzzBreaker(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 5, 5, 255, 0, 0, 0, 0, 3, 3, 3, 0})
	f.Add([]byte{0, 0, 0, 0, 5, 5, 5, 255, 0, 0, 6, 0, 5, 3, 255})
	f.Fuzz(play)
}
