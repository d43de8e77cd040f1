package e2e

import (
	"slices"
	"strings"
	"testing"

	"spillway/internal/result"
)

// short is a run of 3 s with nothing wrong, and with no threshold of its own.
func short(more ...string) []string {
	plain := []string{"run", "steady", "-r", "200", "-z", "2s", "--set", "load.warmup=500ms", "--set", "thresholds=[]"}
	return slices.Concat(plain, busy, more)
}

func TestVerdictsAndExitCodes(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for name, row := range map[string]struct {
		args    []string
		code    int
		verdict result.Verdict
		finding string // its code
		names   string // and what its message names
	}{
		"a fault that left no mark tested nothing": {
			short("--set", `faults=[{kind: workers.fail, from: 500ms, for: 1s, fail: {transient: 1e-9}}]`),
			5, result.Invalid, "fault-without-mark", "workers.fail",
		},
		"too few samples are no measurement": {
			short("-r", "20"), 5, result.Invalid, "too-few-samples", "40 confirm latencies",
		},
		"a missed threshold fails the run": {
			short("--set", "thresholds=[latency_seconds.confirm.p99<1us]"),
			3, result.Fail, "threshold", "latency_seconds.confirm.p99<1us",
		},
		"a threshold without samples fails the run": {
			short("--set", "thresholds=[latency_seconds.delay_error.p99<1h]"),
			3, result.Fail, "threshold", "latency_seconds.delay_error.p99<1h",
		},
		"an expectation that does not hold fails the run": {
			short("--set", "expect.parked=3"), 3, result.Fail, "expectation", "parked is 0, expected exactly 3",
		},
		"a run cut short by its bound is invalid": {
			short("-z", "20s", "--max-time", "2s"), 5, result.Invalid, "out-of-time", "--max-time 2s",
		},
		"an invalid measurement comes before a missed threshold": {
			short("-r", "20", "--set", "thresholds=[messages.offered==1]"), 5, result.Invalid, "too-few-samples", "40",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runProfile(t, call{args: row.args, env: s.env()}, row.code)
			if r.Verdict != row.verdict {
				t.Errorf("verdict %q, want %q", r.Verdict, row.verdict)
			}
			if message := r.finding(t, row.finding); !strings.Contains(message, row.names) {
				t.Errorf("finding %q does not name %q", message, row.names)
			}
			if m := r.Messages; m.Applied != m.Offered || m.Lost != 0 {
				t.Errorf("account %+v, want all applied: only the verdict is another", m)
			}
			s.discard(t, r.Run.ID)
		})
	}
}
