package workers

import (
	"errors"
	"sync/atomic"

	"spillway/workers/service"
)

// Failures that the profile asks for. They stand for what a real handler meets.
var (
	errSimulatedTransient = errors.New("simulated: a downstream service timed out")
	errSimulatedPermanent = errors.New("simulated: the order is in a state that forbids this transition")
	errSimulatedUnknown   = errors.New("simulated: an error of no known class")
)

// Failing is the failure model: shares that hold all the time and, while a fault window is open, others in their place.
// It is safe for concurrent use.
type Failing struct {
	usual     service.Shares
	seed      uint64
	window    atomic.Pointer[service.Shares]
	simulated atomic.Int64
}

// NewFailing returns the model with its usual shares.
func NewFailing(usual service.Shares, seed uint64) *Failing {
	return &Failing{usual: usual, seed: seed}
}

// Open puts other shares in place of the usual ones, until Close.
func (f *Failing) Open(s service.Shares) { f.window.Store(&s) }

// Close ends the window.
func (f *Failing) Close() { f.window.Store(nil) }

// Simulated returns how many attempts failed or were refused by the model so far: the mark that a window leaves.
func (f *Failing) Simulated() int64 { return f.simulated.Load() }

// draw returns the fate of one attempt.
func (f *Failing) draw(seq int64, attempt int) service.Fate {
	shares := f.usual
	if w := f.window.Load(); w != nil {
		shares = *w
	}
	fate := service.Draw(shares, f.seed, seq, attempt)
	if fate != service.None {
		f.simulated.Add(1)
	}
	return fate
}
