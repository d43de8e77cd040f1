package retry

import (
	"sync"
	"time"
)

// TokenSettings is a budget of the retries of all messages together. It bounds what retries add to the load when much fails at
// once, where the budget of each message alone multiplies it: a share of the first attempts, and a floor so that little
// traffic can retry at all (M. Eriksen's RetryBudget in Finagle; Google's SRE book, chapter 21).
type TokenSettings struct {
	Ratio float64 // retries for each first attempt of the last TokenWindow; 0 is no such budget
	Floor float64 // retries per second beside them
	Defer bool    // what is over it waits in the last tier instead of being parked
}

// TokenWindow is how long a first attempt counts, and how long a retry is remembered.
const TokenWindow = tokenSlots * tokenSlot

const (
	tokenSlots = 10
	tokenSlot  = time.Second
)

// Tokens keeps such a budget. It is safe for concurrent use. Times are offsets on one time base and may be a little out of order.
type Tokens struct {
	settings TokenSettings

	mu    sync.Mutex // guards the rest
	slots [tokenSlots]tokenCount
}

// tokenCount is what came in one slot of time; number says in which.
type tokenCount struct {
	number int64
	first  int
	spent  int
}

// NewTokens returns a budget; nil, which allows everything, where the ratio is 0.
func NewTokens(s TokenSettings) *Tokens {
	if s.Ratio == 0 {
		return nil
	}
	return &Tokens{settings: s}
}

// First notes the first attempt of a message.
func (t *Tokens) First(now time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slot(now).first++
}

// Spend takes a token for a retry, and reports whether there was one.
func (t *Tokens) Spend(now time.Duration) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.slot(now)
	first, spent := 0, 0
	for _, s := range t.slots {
		if s.number > at.number-tokenSlots {
			first += s.first
			spent += s.spent
		}
	}
	if float64(spent+1) > t.settings.Ratio*float64(first)+t.settings.Floor*TokenWindow.Seconds() {
		return false
	}
	at.spent++
	return true
}

// slot returns the slot of a time, emptied when it was of a time before. A time before that of the slot counts as that.
func (t *Tokens) slot(now time.Duration) *tokenCount {
	number := int64(now / tokenSlot)
	s := &t.slots[number%tokenSlots]
	if s.number < number {
		*s = tokenCount{number: number}
	}
	return s
}

// Over returns what becomes of a retry that was decided and has no token.
func (b *Budget) Over(d Decision, s TokenSettings) Decision {
	if !s.Defer {
		return park(BudgetExhausted)
	}
	tier := b.Tiers[len(b.Tiers)-1]
	if tier.Name == d.Tier {
		return d
	}
	return Decision{Tier: tier.Name, Key: tier.Routes[0].Key, Delay: tier.Routes[0].Delay}
}
