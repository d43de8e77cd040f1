package cli

import (
	"errors"
	"fmt"
)

// Exit codes of every verb. Where several apply: 4 before 5 before 3 before 130.
const (
	exitPass        = 0
	exitInternal    = 1
	exitUsage       = 2 // flags or profile
	exitThreshold   = 3 // a threshold or gate failed
	exitGuarantee   = 4 // a message lost, an effect doubled or missing
	exitInvalid     = 5 // the measurement cannot be trusted, or is undecided
	exitEnvironment = 6 // unreachable, refused, too old, missing rights
	exitInterrupted = 130
)

// exitError carries the exit code of a verb. A nil err means that everything there is to say has been printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError, environmentError and so on mark an error with its exit code.
func usageError(err error) error       { return &exitError{exitUsage, err} }
func environmentError(err error) error { return &exitError{exitEnvironment, err} }
func exitWith(code int) error          { return &exitError{code, nil} }

// exitCode returns the code for what a verb returned.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &e):
		return e.code
	default:
		return exitInternal
	}
}
