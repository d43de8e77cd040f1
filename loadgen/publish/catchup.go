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

// lateAfter is the lag from which an arrival counts as late: well above a timer's error, well below what a person would
// call a pause.
const lateAfter = 10 * time.Millisecond

// catchUp paces late arrivals.
type catchUp struct {
	limit *rate.Limiter
	late  atomic.Int64
}

func newCatchUp(perSecond float64) *catchUp {
	burst := max(1, int(perSecond*lateAfter.Seconds()))
	return &catchUp{limit: rate.NewLimiter(rate.Limit(perSecond*CatchUpBound), burst)}
}

// wait delays an arrival that is late by lag as long as the bound asks; arrivals on time pass and use up allowance, so
// that late and punctual ones together keep to it. It reports false when ctx ended.
func (c *catchUp) wait(ctx context.Context, lag time.Duration) bool {
	if lag < lateAfter {
		c.limit.Reserve() // also when there is none left: a late arrival after it waits for both
		return true
	}
	c.late.Add(1)
	return c.limit.Wait(ctx) == nil
}
