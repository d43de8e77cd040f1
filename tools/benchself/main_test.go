package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServers are the servers that tests use. An absent one is not a pass.
func testServers(t *testing.T) servers {
	t.Helper()
	s := servers{os.Getenv("SPILLWAY_TEST_URI"), os.Getenv("SPILLWAY_TEST_MANAGEMENT"), os.Getenv("SPILLWAY_TEST_POSTGRES")}
	if s.uri == "" || s.management == "" || s.postgres == "" {
		t.Fatal("SPILLWAY_TEST_URI, _MANAGEMENT and _POSTGRES are not all set; run make test, which starts the servers that this test needs")
	}
	return s
}

func TestEveryMeasureHasANameOfItsOwnAndStepsThatTakeTime(t *testing.T) {
	t.Parallel()
	o := options{pairs: 10, millions: memoryMillions, load: closedLoad{duration: 5 * time.Second, warmup: time.Second}}
	seen := map[string]bool{}
	var total time.Duration
	for _, m := range all() {
		if n, each := m.steps(o); seen[m.name()] || m.name() == "" || m.title() == "" || n < 1 || each < time.Second {
			t.Errorf("%q (%q): %d steps of %v, or the name is taken", m.name(), m.title(), n, each)
		} else if m.name() != (memory{}).name() {
			total += time.Duration(n) * each
		}
		seen[m.name()] = true
		for _, target := range m.targets() {
			if target.Measure == "" || target.Unit == "" {
				t.Errorf("%s has the target %+v", m.name(), target)
			}
		}
	}
	if total > 30*time.Minute {
		t.Errorf("all but the memory take %v, which nobody waits for", total)
	}
}

func TestWhatIsMeasuredIsAllButTheMemoryUnlessAskedFor(t *testing.T) {
	t.Parallel()
	usual := names()[:len(names())-1]
	for name, row := range map[string]struct {
		o    options
		want []string
	}{
		"nothing said":       {options{}, usual},
		"memory too":         {options{memory: true}, names()},
		"two of them":        {options{only: []string{"relay", "inbox"}}, []string{"inbox", "relay"}},
		"the memory by name": {options{only: []string{"memory"}}, []string{"memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measures, err := chosen(row.o)
			var got []string
			for _, m := range measures {
				got = append(got, m.name())
			}
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("%v, %v; want %v", got, err, row.want)
			}
		})
	}
	if _, err := chosen(options{only: []string{"speed"}}); err == nil || !strings.Contains(err.Error(), "plain-loop") {
		t.Errorf("an unknown name gives %v, want the names that there are", err)
	}
}

func TestTheTimeLeftFollowsWhatTheStepsReallyTook(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := progress{out: &out, planned: 100 * time.Second}
	for _, row := range []struct {
		done, elapsed time.Duration
		want          string
	}{
		{0, 0, " (1m40s left)"}, {25 * time.Second, 25 * time.Second, " (1m15s left)"}, {50 * time.Second, 100 * time.Second, " (1m40s left)"},
		{100 * time.Second, 100 * time.Second, ""},
	} {
		p.done = row.done
		if got := p.left(row.elapsed); got != row.want {
			t.Errorf("%v of %v done in %v leaves %q, want %q", row.done, p.planned, row.elapsed, got, row.want)
		}
	}
}
