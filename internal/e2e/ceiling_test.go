package e2e

import (
	"slices"
	"strings"
	"testing"

	"spillway/internal/result"
)

// withoutDatabase leaves a broker alone in the environment.
func (s shared) withoutDatabase() []string {
	return slices.DeleteFunc(s.env(), func(pair string) bool { return strings.HasPrefix(pair, "SPILLWAY_POSTGRES=") })
}

// TestARunWithoutADatabaseIsNeverAPass gives no database: one that the run asked for would be started, and named.
func TestARunWithoutADatabaseIsNeverAPass(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: short("--set", "inbox.strategy=none"), env: s.withoutDatabase()}, 5)
	if r.Verdict != result.Invalid {
		t.Errorf("verdict %q, want invalid", r.Verdict)
	}
	if message := r.finding(t, "account"); message != "not audited: this run has no database" {
		t.Errorf("finding %q", message)
	}
	m := r.Messages
	if m.Offered != 500 || m.Confirmed != 500 || m.Delivered != 500 || m.NotAudited != 500 || m.Applied != 0 || m.Lost != 0 {
		t.Errorf("account %+v, want 500 confirmed, delivered, and not audited", m)
	}
	if r.Environment.Postgres.Version != "" || r.Inbox.CommitsPerSecond != nil || r.Signals.PoolWaitSeconds != nil {
		t.Errorf("PostgreSQL %q, %v commits/s, pool wait %v: want none of a database that is not there",
			r.Environment.Postgres.Version, r.Inbox.CommitsPerSecond, r.Signals.PoolWaitSeconds)
	}
}

// TestAClosedLoadIsMarkedInItsResult offers on real servers and with a database: only the schedule is missing.
func TestAClosedLoadIsMarkedInItsResult(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: short("-z", "1s", "-c", "20", "--set", "load.mode=closed", "--set", "load.publishers=2"), env: s.env()}, 0)
	if r.Run.LoadMode != "closed" || !strings.Contains(r.finding(t, "closed-load"), "no schedule") {
		t.Errorf("load mode %q, findings %v", r.Run.LoadMode, r.Findings)
	}
	m := r.Messages
	if m.Offered < 100 || m.Confirmed != m.Offered || m.Applied != m.Offered || m.Shed != 0 || m.DuplicateEffects != 0 {
		t.Errorf("account %+v, want all that was offered applied", m)
	}
	if r.Signals.CatchUp.Policy != "none" || r.Signals.CatchUp.Late != 0 {
		t.Errorf("catch-up %+v, want none", r.Signals.CatchUp)
	}
}

// TestARunWithoutObserversSaysSoAndProvesNothing counts, and has no latency.
func TestARunWithoutObserversSaysSoAndProvesNothing(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: short("--observers", "off", "--set", "inbox.strategy=none"), env: s.env()}, 5)
	if message := r.finding(t, "account"); message != "not audited: every message: this run had no observers" {
		t.Errorf("finding %q", message)
	}
	m := r.Messages
	if m.Offered != 500 || m.Confirmed != 500 || m.NotAudited != 500 || m.Publishes != 500 {
		t.Errorf("account %+v, want 500 confirmed and not audited", m)
	}
	if r.Latency.Confirm != nil || len(r.Publish.SentEachSecond) != 0 {
		t.Errorf("confirm latency %v, sent each second %v: want none without observers", r.Latency.Confirm, r.Publish.SentEachSecond)
	}
}
