// Package drill says what came of drills: runs whose fault is the point, each with its passing conditions in its own profile.
// It reads results and runs nothing.
package drill

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"spillway/internal/fault"
	"spillway/internal/result"
)

// Status is what came of one drill.
type Status string

// The statuses. Inconclusive is a drill whose fault left no mark, or whose measurement cannot be trusted: it proves nothing, and
// counts as failed.
const (
	Pass         Status = "pass"
	Fail         Status = "fail"
	Inconclusive Status = "inconclusive"
	Skipped      Status = "skipped" // this machine, or these servers, cannot have its fault
)

// Outcome is what came of one drill.
type Outcome struct {
	Name     string             `json:"name"`
	Status   Status             `json:"status"`
	ExitCode int                `json:"exit_code"` // that its run alone would have had
	Seconds  float64            `json:"seconds"`
	Reasons  []string           `json:"reasons"`  // why it did not pass; empty when it did
	Evidence map[string]float64 `json:"evidence"` // marks of its faults
	Messages *result.Messages   `json:"messages"` // null without a result
	RunID    string             `json:"run_id"`
	Folder   string             `json:"folder"` // of the run's files
}

// Of makes the outcome of a drill from its run's result, or from the error that kept it from having one.
func Of(name string, res *result.Result, err error, seconds float64) Outcome {
	o := Outcome{Name: name, Seconds: seconds, Evidence: map[string]float64{}, Reasons: []string{}}
	switch {
	case res != nil:
		o.read(res)
	case errors.Is(err, fault.ErrUnavailable):
		o.Status, o.Reasons = Skipped, []string{err.Error()}
	case err != nil:
		o.Status, o.Reasons = Inconclusive, []string{err.Error()}
	}
	return o
}

func (o *Outcome) read(res *result.Result) {
	o.RunID, o.Folder, o.ExitCode, o.Messages = res.Run.ID, res.Dir, res.Run.ExitCode, &res.Messages
	for _, f := range res.Faults {
		for name, value := range f.Evidence {
			o.Evidence[name] += value
		}
	}
	switch res.Verdict {
	case result.Pass:
		o.Status = Pass
	case result.Invalid:
		o.Status = Inconclusive
	default:
		o.Status = Fail
	}
	for _, f := range res.Findings {
		if f.Severity == result.Error && f.Code != thresholdMissed { // told below, with what was observed
			o.Reasons = append(o.Reasons, f.Message)
		}
	}
	for _, t := range res.Thresholds {
		if !t.OK {
			o.Reasons = append(o.Reasons, missed(t))
		}
	}
}

// thresholdMissed is the code of the finding that a run has for each threshold it misses.
const thresholdMissed = "threshold"

func missed(t result.ThresholdOutcome) string {
	if t.Observed == nil {
		return t.Expression + ": no samples"
	}
	return fmt.Sprintf("%s: observed %.4g", t.Expression, *t.Observed)
}

// words say what a drill shows: its marks, then what came of the messages.
func (o *Outcome) words() string {
	var parts []string
	for name, value := range o.Evidence {
		parts = append(parts, fmt.Sprintf("%s %.4g", strings.ReplaceAll(name, "_", " "), value))
	}
	slices.Sort(parts)
	if m := o.Messages; m != nil {
		parts = append(parts, fmt.Sprintf("%d offered, %d applied, %d parked, %d duplicates absorbed, %d lost", m.Offered, m.Applied, m.Parked, m.DuplicateDeliveries, m.Lost))
	}
	return strings.Join(parts, ", ")
}
