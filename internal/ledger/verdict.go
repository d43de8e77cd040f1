package ledger

import (
	"errors"
	"fmt"
	"strings"
)

// The guarantees. The text of each is its definition.
var (
	// ErrLost: a message that the broker confirmed was found nowhere: not applied, refused, parked, queued or expired.
	ErrLost = errors.New("confirmed messages were found nowhere: lost")
	// ErrDuplicateEffects: a message had more than one row in the append-only effect log.
	ErrDuplicateEffects = errors.New("messages took effect more than once: duplicate effects")
	// ErrMissingEffects: an id was claimed in the inbox, yet no effect of it was logged.
	ErrMissingEffects = errors.New("messages were claimed in the inbox without an effect: missing effects")
)

// ErrUnbalanced is returned when the account does not add up: a defect of the measurement, never of the system under test.
var ErrUnbalanced = errors.New("the account does not balance")

// ErrUnaudited is returned when a place could not be read, so that nothing is proved of it.
var ErrUnaudited = errors.New("not audited")

// Allowance is the loss that a profile declares because its settings cannot avoid it. The zero value allows none.
type Allowance struct {
	Lost, DuplicateEffects, MissingEffects int64
}

// Broken returns the guarantees that the account breaks beyond the allowance, each wrapping its sentinel and naming
// sequences. Where a place could not be read, absence proves nothing: only an effect that is there twice does.
func (a *Account) Broken(allowed Allowance) []error {
	var broken []error
	add := func(found, allowance int64, guarantee error, samples []int64) {
		if found > allowance {
			broken = append(broken, fmt.Errorf("%w: %d, allowed %d; x-seq %v", guarantee, found, allowance, samples))
		}
	}
	add(a.Lost, allowed.Lost, ErrLost, a.LostSamples)
	add(a.DuplicateEffects, allowed.DuplicateEffects, ErrDuplicateEffects, a.DuplicateSamples)
	add(a.MissingEffects, allowed.MissingEffects, ErrMissingEffects, a.MissingSamples)
	return broken
}

// Sound returns why the account cannot be trusted, or nil.
func (a *Account) Sound() error {
	if len(a.Unaudited) > 0 {
		return fmt.Errorf("%w: %s", ErrUnaudited, strings.Join(a.Unaudited, "; "))
	}
	return a.Balance()
}
