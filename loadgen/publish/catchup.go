package publish

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// CatchUpBound is the most by which late arrivals may exceed the asked rate while a publisher makes up for a pause. A
// burst above it would measure the pause, not the broker.
const CatchUpBound = 1.25

// pacedAt is what the limiter lets through: a hair less, so that its first burst and the edges of whole seconds do not
// lift any second above the bound.
const pacedAt = CatchUpBound - 0.01

// LateAfter is the lag from which an arrival counts as late: well above a timer's error, well below what a person would
// call a pause.
const LateAfter = 10 * time.Millisecond

// Policies of catching up.
const (
	Bounded = "bounded" // late arrivals are sent late, never above CatchUpBound times the rate asked for at their due instant
	Shed    = "shed"    // late arrivals are never sent
	Burst   = "burst"   // late arrivals are sent at once, whatever the rate
)

// CatchUp decides what becomes of late arrivals; nil sends them at once. It belongs to the goroutine that sends, except Late and Bursts, which
// any may call.
type CatchUp struct {
	policy string
	rate   func(due time.Duration) float64 // asked of this publisher at an instant, per second
	limit  *rate.Limiter
	behind bool // the arrival before was late
	late   atomic.Int64
	bursts atomic.Int64
}

// NewCatchUp returns a policy for a publisher that is asked for the given rate at each instant.
func NewCatchUp(policy string, perSecond func(due time.Duration) float64) *CatchUp {
	return &CatchUp{policy: policy, rate: perSecond, limit: rate.NewLimiter(rate.Inf, 1)}
}

// Wait delays an arrival due at an instant, which is late by lag, as long as the bound asks; arrivals on time pass and use
// up allowance, so that late and punctual ones together keep to it. It reports false when the arrival is not to be sent:
// the policy sheds it, or ctx ended.
func (c *CatchUp) Wait(ctx context.Context, due, lag time.Duration) bool {
	if c == nil {
		return ctx.Err() == nil
	}
	if c.policy == Bounded {
		c.follow(due)
	}
	if lag < LateAfter {
		c.behind = false
		c.limit.Reserve() // also when there is none left: a late arrival after it waits for both
		return true
	}
	c.late.Add(1)
	switch c.policy {
	case Shed:
		return false
	case Burst:
		if !c.behind {
			c.behind = true
			c.bursts.Add(1)
		}
		return ctx.Err() == nil
	default:
		return c.limit.Wait(ctx) == nil
	}
}

// leastRate keeps a late arrival from waiting for ever where the shape is at 0, at the edge of a pause.
const leastRate = 1

// follow moves the bound to the rate that was asked for at the arrival's own due instant: after a pause of the shape, or
// in its fall, the rate of now would be the wrong one.
func (c *CatchUp) follow(due time.Duration) {
	perSecond := max(leastRate, c.rate(due))
	bound := rate.Limit(perSecond * pacedAt)
	if bound != c.limit.Limit() {
		c.limit.SetLimit(bound)
		c.limit.SetBurst(max(1, int(perSecond*LateAfter.Seconds())))
	}
}

// Late returns how many arrivals were late.
func (c *CatchUp) Late() int64 { return c.late.Load() }

// Bursts returns how often the policy burst sent a row of late arrivals at once.
func (c *CatchUp) Bursts() int64 { return c.bursts.Load() }
