package main

import (
	"cmp"
	"fmt"
	"strconv"
)

// target is one row of the table before it is measured.
type target struct {
	Measure string   `json:"measure"`
	Unit    string   `json:"unit"`              // of bounds and value: "x" is a ratio
	AtMost  bool     `json:"at_most"`           // the bound is an upper one
	Bound   *float64 `json:"bound"`             // nil is none: the row is for information
	Goal    *float64 `json:"goal"`              // what we are after; nil is none
	ByValue bool     `json:"by_value"`          // the target speaks of the value itself, and not of what other runs may give
	Least   int      `json:"least"`             // runs or messages without which it is not judged; 0 is leastSamples
	Digits  int      `json:"digits"`            // after the point
	Apart   bool     `json:"apart,omitempty"`   // measured only when asked for
	Command string   `json:"command,omitempty"` // that measures it, when it is apart
}

// row is a target and what was measured for it.
type row struct {
	target
	Ours    string   `json:"ours"`    // figure of spillway
	Against string   `json:"against"` // figure of what it was held against; "" is nothing
	Value   interval `json:"value"`
	Samples int      `json:"samples"` // pairs, runs, or millions of messages
	Verdict string   `json:"verdict"`
}

// Verdicts of a row.
const (
	met       = "met"
	missed    = "missed"
	undecided = "measured too little"
	unjudged  = "-"
)

// leastSamples is the default of target.Least: how many values the interval of a median needs: with five, even the whole span from the least to the
// greatest covers the median in less than 95 % of the cases (1 - 2 / 2^5 = 94 %).
const leastSamples = 6

// of makes the row of a target.
func (t target) of(value interval, samples int, ours, against string) row {
	return row{target: t, Ours: ours, Against: against, Value: value, Samples: samples, Verdict: t.verdict(value, samples)}
}

// verdict judges by the end of the interval that speaks against the program, unless the target speaks of the value itself.
func (t target) verdict(v interval, samples int) string {
	judged := v.Low
	switch {
	case t.ByValue:
		judged = v.Mid
	case t.AtMost:
		judged = v.High
	}
	switch {
	case t.Bound == nil:
		return unjudged
	case samples < cmp.Or(t.Least, leastSamples):
		return undecided
	case t.AtMost && judged <= *t.Bound, !t.AtMost && judged >= *t.Bound: // neither is true of no number
		return met
	default:
		return missed
	}
}

// Want says the bound in words.
func (t target) Want() string { return t.words(t.Bound) }

// Aim says the goal in words.
func (t target) Aim() string { return t.words(t.Goal) }

func (t target) words(bound *float64) string {
	if bound == nil {
		return ""
	}
	text := withUnit(strconv.FormatFloat(*bound, 'f', -1, 64), t.Unit)
	if t.AtMost {
		return "at most " + text
	}
	return "at least " + text
}

// Result says the value, and Interval its bounds.
func (r row) Result() string { return withUnit(r.number(r.Value.Mid), r.Unit) }

// Interval returns the bounds of the value, "" where there is but the value.
func (r row) Interval() string {
	if r.Value.Low == r.Value.High {
		return ""
	}
	return r.number(r.Value.Low) + " to " + r.number(r.Value.High)
}

func (r row) number(x float64) string { return strconv.FormatFloat(x, 'f', r.Digits, 64) }

func withUnit(number, unit string) string {
	if unit == "x" {
		return number + "x"
	}
	return number + " " + unit
}

// thousands writes a whole number with commas.
func thousands(x float64) string {
	text := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func perSecond(x float64) string { return thousands(x) + "/s" }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
