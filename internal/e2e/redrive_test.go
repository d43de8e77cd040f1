package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// parked is a run that leaves its parking lot: one message in five fails for good, and the threshold that nothing is parked is
// missed.
func parked(t *testing.T, s shared) run {
	t.Helper()
	return runProfile(t, call{args: short("--set", "workers.fail.permanent=0.2", "--set", "seed=3", "--set", "inbox.strategy=transaction", "--set", "workers.concurrency=8",
		"--set", "thresholds=[messages.parked==0]"), env: s.env()}, 3)
}

func TestARedriveMovesWhatIsChosenAndItsWorkersApplyIt(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := parked(t, s)
	n := r.Messages.Parked
	if n < 50 {
		t.Fatalf("%d parked", n)
	}
	redrive := func(want int, more ...string) string {
		t.Helper()
		end := spillway(t, call{args: append([]string{"redrive", r.dir}, more...), env: s.env()})
		if end.code != want {
			t.Fatalf("redrive %v: exit %d, want %d\n%s", more, end.code, want, end.said())
		}
		return end.said()
	}
	dry := redrive(0, "--dry-run")
	if lines := strings.Count(dry, " class \"permanent\" "); lines != int(n) || strings.Contains(dry, "sku") || !strings.Contains(dry, "nothing was") {
		t.Errorf("a dry run with %d lines of %d parked messages:\n%.2000s", lines, n, dry)
	}
	if said := redrive(0, "--dry-run", "--show-body", "--limit", "1"); !strings.Contains(said, "sku") {
		t.Errorf("no body in %q", said)
	}
	if said := redrive(0, "--error-class", "transient"); !strings.Contains(said, "0 of ") {
		t.Errorf("a class that no message has: %q", said)
	}
	id, _, _ := strings.Cut(dry, " ")
	if said := redrive(0, "--id", strings.Trim(id, `"`)); !strings.Contains(said, "1 of ") {
		t.Errorf("one id: %q", said)
	}
	// The profile's workers fail these for good each time, so all come back: that is what the bound is for.
	said := redrive(3, "--rate", "40", "--work")
	if !strings.Contains(said, "parked again") {
		t.Errorf("a redrive in vain: %q", said)
	}
	s.discard(t, r.Run.ID)
}

func TestARedriveAsAPhaseAppliesWhatAnOutageParked(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: short("-z", "3s", "--set", "inbox.strategy=transaction", "--set", "workers.concurrency=8", "--set", "retry.attempts=2", "--set", "retry.unknown_attempts=2",
		"--set", "topology.tiers=[50ms]", "--set", "redrive.rate=500",
		"--set", "faults=[{kind: workers.fail, from: 500ms, for: 1s, fail: {transient: 1}}]"), env: s.env()}, 0)
	r.noErrors(t)
	m, d := r.Messages, r.Redrive
	if d == nil || d.Parked == 0 || d.Moved != d.Parked || d.Back != 0 {
		t.Fatalf("redrive %+v", d)
	}
	if m.Applied != m.Offered || m.Parked+m.Lost+m.DuplicateEffects != 0 {
		t.Errorf("account %+v, want all applied in the end", m)
	}
	s.nothingLeft(t, r.Run.ID)
}

func TestARedriveThatIsAskedForNonsenseSaysSo(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"no queue":              {nil, "which parking lot?"},
		"the same queue":        {[]string{"--from", "a", "--to", "a"}, "the same queue"},
		"no rate":               {[]string{"--from", "a", "--to", "b", "--rate", "0"}, "--rate 0"},
		"work without a run":    {[]string{"--from", "a", "--to", "b", "--work"}, "needs the folder of a run"},
		"a folder that is none": {[]string{filepath.Join(t.TempDir(), "x")}, "no such file"},
		"no ids":                {[]string{"--from", "a", "--to", "b", "--ids", "/dev/null"}, "would choose every message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := spillway(t, call{args: append([]string{"redrive"}, row.args...), env: s.env()})
			if end.code != 2 || !strings.Contains(end.stderr, row.want) {
				t.Errorf("exit %d, %q; want 2 and %q", end.code, end.stderr, row.want)
			}
		})
	}
	end := spillway(t, call{args: []string{"redrive", "--from", "no-such", "--to", "queue"}, env: s.env()})
	if end.code != 6 || !strings.Contains(end.stderr, "no-such") {
		t.Errorf("a queue that is not there: exit %d, %q", end.code, end.stderr)
	}
}
