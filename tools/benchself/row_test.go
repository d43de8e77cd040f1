package main

import (
	"math"
	"testing"
)

func TestTheEndOfTheIntervalThatSpeaksAgainstUsIsJudged(t *testing.T) {
	t.Parallel()
	least, most := target{Bound: new(1.15)}, target{Bound: new(0.65), AtMost: true}
	for name, row := range map[string]struct {
		target  target
		value   interval
		samples int
		want    string
	}{
		"the lower end reaches a least":           {least, interval{1.15, 1.3, 1.4}, 10, met},
		"the lower end does not":                  {least, interval{1.14, 1.3, 1.4}, 10, missed},
		"the upper end keeps below a most":        {most, interval{0.5, 0.6, 0.65}, 10, met},
		"the upper end does not":                  {most, interval{0.5, 0.6, 0.66}, 10, missed},
		"pairs without an interval":               {least, interval{2, 2, 2}, 5, undecided},
		"six pairs are enough":                    {least, interval{2, 2, 2}, 6, met},
		"the value itself is judged where asked":  {target{Bound: new(2.0), AtMost: true, ByValue: true, Least: 5}, interval{1, 2, 9}, 5, met},
		"the value itself, above":                 {target{Bound: new(2.0), AtMost: true, ByValue: true, Least: 5}, interval{1, 2.1, 9}, 5, missed},
		"fewer runs than the target speaks of":    {target{Bound: new(2.0), AtMost: true, ByValue: true, Least: 5}, interval{1, 1, 1}, 4, undecided},
		"a row for information":                   {target{}, interval{1, 1, 1}, 10, unjudged},
		"no number is never met, as a least":      {least, exactly(math.NaN()), 10, missed},
		"no number is never met, as a most":       {most, exactly(math.NaN()), 10, missed},
		"an upper bound of 0 is met by exactly 0": {target{Bound: new(0.0), AtMost: true}, exactly(0), 6, met},
	} {
		if got := row.target.verdict(row.value, row.samples); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestARowSaysItsFiguresInItsUnit(t *testing.T) {
	t.Parallel()
	r := target{Unit: "x", Bound: new(1.15), Goal: new(1.4), Digits: 3}.of(interval{1.2, 1.25, 1.5}, 10, "2/s", "1/s")
	if r.Want() != "at least 1.15x" || r.Aim() != "at least 1.4x" || r.Result() != "1.250x" || r.Interval() != "1.200 to 1.500" {
		t.Errorf("%q, %q, %q, %q", r.Want(), r.Aim(), r.Result(), r.Interval())
	}
	one := target{Unit: "MB", AtMost: true, Bound: new(400.0)}.of(exactly(52.4), 10, "52 MB", "")
	if one.Want() != "at most 400 MB" || one.Aim() != "" || one.Result() != "52 MB" || one.Interval() != "" {
		t.Errorf("%q, %q, %q, %q", one.Want(), one.Aim(), one.Result(), one.Interval())
	}
}

func TestThousandsAreSetApart(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 50289.4: "50,289", 1234567: "1,234,567"} {
		if got := thousands(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}
