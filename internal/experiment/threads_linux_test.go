package experiment

import (
	"testing"
)

func TestSchedstatIsReadOrUnknown(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]waited{
		"756238 424649 5\n": {424649, 5, true},
		"0 0 0\n":           {0, 0, true},
		"756238 424649\n":   {},
		"1 a 3\n":           {},
		"1 2 b\n":           {},
		"":                  {},
	} {
		if got := parseSchedstat(line); got != want {
			t.Errorf("%q is read as %+v, want %+v", line, got, want)
		}
	}
}

func TestThreadsHaveWaitedNoLessThanBefore(t *testing.T) {
	t.Parallel()
	before := threadsWaited()
	after := threadsWaited()
	if !before.known {
		t.Skip("this kernel has no scheduler statistics: /proc/self/task/*/schedstat")
	}
	if !after.known || after.time < before.time || after.runs < before.runs {
		t.Errorf("waited %+v, then %+v", before, after)
	}
}
