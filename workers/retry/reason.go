package retry

import "slices"

// Reason says why a message is parked. The set is closed: reasons are metric labels and keys of results. The zero value
// is no reason.
type Reason string

// Reasons given by the caller, with a permanent failure.
const (
	BadJSON             Reason = "bad-json"
	MissingField        Reason = "missing-field"
	UnknownSchema       Reason = "unknown-schema"
	EmptyID             Reason = "empty-id"
	ForbiddenTransition Reason = "forbidden-transition"
	Constraint          Reason = "constraint" // the database refused the data: a constraint or a value out of range
	PermanentFailure    Reason = "permanent"  // any other permanent failure
)

// Reasons of a budget that is used up.
const (
	AttemptsExhausted Reason = "attempts-exhausted"
	UnknownExhausted  Reason = "unknown-exhausted"
	AgeExhausted      Reason = "age-exhausted"
	DeadlinePassed    Reason = "deadline-passed"
	BudgetExhausted   Reason = "budget-exhausted" // of all messages together: more retries than their share
)

// Reasons returns every reason, in the order in which they are reported. The slice is the caller's.
func Reasons() []Reason {
	return []Reason{
		BadJSON, MissingField, UnknownSchema, EmptyID, ForbiddenTransition, Constraint, PermanentFailure,
		AttemptsExhausted, UnknownExhausted, AgeExhausted, DeadlinePassed, BudgetExhausted,
	}
}

// known reports whether r belongs to the closed set.
func (r Reason) known() bool { return slices.Contains(Reasons(), r) }
