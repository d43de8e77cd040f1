package e2e

import (
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"spillway/internal/result"
	"spillway/loadgen/publish"
)

func TestSteadyAccountsForEveryMessageAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: []string{"run", "steady", "-r", "300", "-z", "2s", "--set", "load.warmup=1s", "--set", "thresholds=[]"}, env: s.env()}, 0)
	r.noErrors(t)
	m := r.Messages
	const offered = 300 * (1 + 2)
	if m.Offered != offered || m.Confirmed != offered || m.Applied != offered || m.Publishes != offered {
		t.Errorf("offered, confirmed, applied, published are %d, %d, %d, %d; want %d each", m.Offered, m.Confirmed, m.Applied, m.Publishes, offered)
	}
	if m.Lost+m.DuplicateEffects+m.MissingEffects+m.Shed+m.QueuedAtEnd+m.Parked+m.Overlaps != 0 {
		t.Errorf("not all zero: %+v", m)
	}
	if !maps.Equal(m.RetriesPerMessage, map[string]int64{"0": offered}) {
		t.Errorf("retries per message are %v, want 0 for all", m.RetriesPerMessage)
	}
	for name, l := range map[string]*result.Latency{"confirm": r.Latency.Confirm, "acceptance": r.Latency.Acceptance, "sojourn": r.Latency.Sojourn} {
		if l == nil || l.Count != 600 || l.P50 <= 0 || l.P99 < l.P50 || l.P999 < l.P99 || l.Max < l.P999 {
			t.Errorf("%s is %+v, want 600 samples in order", name, l)
		}
	}
	if r.Latency.Acceptance.P50 < r.Latency.Confirm.P50 {
		t.Error("acceptance, from the due time, is shorter than confirm, from sending")
	}
	s.nothingLeft(t, r.Run.ID)
	for _, name := range []string{"profile.yaml", "series.csv", "latency/confirm.hlog", "latency/acceptance.hlog", "latency/sojourn.hlog"} {
		if info, err := os.Stat(filepath.Join(r.dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want a file with something in it", name, err)
		}
	}
	again := spillway(t, call{args: []string{"profile", "validate", filepath.Join(r.dir, "profile.yaml")}})
	if again.code != 0 {
		t.Errorf("the effective profile is not sound: %s", again.said())
	}
}

func TestPoisonIsParkedOnTheFirstAttempt(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := poisonous(t, s, "", 0)
	r.noErrors(t)
	m := r.Messages
	const offered = 400 * 3.5
	made, total := badMade(offered), int64(0)
	for _, kind := range slices.Sorted(maps.Keys(made)) {
		total += made[kind]
		if m.ParkedByReason[kind] != made[kind] || made[kind] == 0 {
			t.Errorf("%d are parked as %s, %d were made", m.ParkedByReason[kind], kind, made[kind])
		}
	}
	if len(made) != 4 || m.Parked != total || m.Applied != offered-total || m.Confirmed != offered {
		t.Errorf("parked %d, applied %d, confirmed %d; made bad are %d of %d", m.Parked, m.Applied, m.Confirmed, total, int(offered))
	}
	if m.RetriesScheduled != 0 || m.RetriesPerMessage["0"] != m.Offered || m.Delivered != m.Offered {
		t.Errorf("retries %d, %v, deliveries %d; want one attempt for each of %d", m.RetriesScheduled, m.RetriesPerMessage, m.Delivered, m.Offered)
	}
	s.nothingLeft(t, r.Run.ID)
}

// badMade counts the bad messages by kind that the profile poison makes with the seed 7.
func badMade(offered int64) map[string]int64 {
	f := publish.Factory{Seed: 7, SKUs: []string{"any"}, CountMin: 1, CountMax: 5, Bad: []publish.Bad{
		{Kind: publish.BadJSON, Share: 0.02}, {Kind: publish.MissingField, Share: 0.02},
		{Kind: publish.UnknownSchema, Share: 0.01}, {Kind: publish.EmptyID, Share: 0.01},
	}}
	made := map[string]int64{}
	for seq := range offered {
		if kind := f.BadKind(seq); kind != "" {
			made[kind]++
		}
	}
	return made
}

// outage shortens both profiles: PostgreSQL is stopped for 5 s, from 2 s into the load.
func outage(profile string) []string {
	plain := []string{
		"run", profile, "-r", "200", "-z", "14s", "--set", "load.warmup=1s", "--set", "faults.0.from=2s", "--set", "faults.0.for=5s",
		"--set", "thresholds=[]", "--set", "topology.time_scale=0.01",
	}
	return slices.Concat(plain, busy)
}

func TestOutageWithoutABreakerStormsAndRecovers(t *testing.T) {
	t.Parallel()
	r := runProfile(t, call{args: outage("outage"), env: ownStack(t)}, 0)
	r.noErrors(t)
	storm := r.RetryStorm
	if storm.Outcome != result.StormRecovered || storm.Amplification == nil || *storm.Amplification <= 1.2 {
		t.Errorf("outcome %q with amplification %v, want recovered above 1.2", storm.Outcome, number(storm.Amplification))
	}
	if number(storm.DebtMax) <= 0 || number(storm.RecoverySeconds) <= 0 {
		t.Errorf("debt %v, recovery %v; want both above 0", number(storm.DebtMax), number(storm.RecoverySeconds))
	}
	if r.OldestAge.Unsettled == nil || r.OldestAge.Unsettled.Max < 5 {
		t.Errorf("the oldest message was %+v, want at least the outage's 5 s", r.OldestAge.Unsettled)
	}
	if len(r.Faults) != 1 || r.Faults[0].Evidence["transient_failures"] <= 0 || r.Faults[0].EndSeconds-r.Faults[0].StartSeconds < 5 {
		t.Errorf("faults are %+v, want one of 5 s with its failures", r.Faults)
	}
	if m := r.Messages; m.Lost+m.Parked+m.QueuedAtEnd != 0 || m.Applied != 200*15 || m.RetriesScheduled == 0 {
		t.Errorf("account %+v, want all of 3000 applied after retries", m)
	}
}

func TestOutageBehindABreakerBurnsNoAttempts(t *testing.T) {
	t.Parallel()
	args := append(outage("outage-breaker"), "--set", "workers.breaker.open_for=7s") // longer than the outage: no probe in it
	r := runProfile(t, call{args: args, env: ownStack(t)}, 0)
	r.noErrors(t)
	if a := number(r.RetryStorm.Amplification); a < 1 || a >= 1.1 {
		t.Errorf("amplification is %v, want below 1.1", a)
	}
	if r.Signals.BreakerOpens < 1 || number(r.Signals.BreakerOpenSeconds) < 7 {
		t.Errorf("the breaker opened %d times for %v s, want 7 s", r.Signals.BreakerOpens, number(r.Signals.BreakerOpenSeconds))
	}
	m := r.Messages
	if m.Lost+m.Parked+m.QueuedAtEnd != 0 || m.Applied != 200*15 {
		t.Errorf("account %+v, want all of 3000 applied", m)
	}
	noAttemptsWhileOpen(t, r)
}

func number(x *float64) float64 {
	if x == nil {
		return -1
	}
	return *x
}

// noAttemptsWhileOpen holds the seconds during which the breaker was open throughout: no handler started, so nothing was
// applied and nothing retried, and no more than the prefetch was held. The second after it opened is left out, since the
// handlers that had begun end in it.
func noAttemptsWhileOpen(t *testing.T, r run) {
	t.Helper()
	rows := series(t, r)
	held, open := 0, 0
	for i, row := range rows {
		if i < 2 || row["breaker_state"] != "open" || rows[i-1]["breaker_state"] != "open" || rows[i-2]["breaker_state"] != "open" {
			continue
		}
		open++
		if row["applied"] != "0" || row["retried"] != "0" || row["parked"] != "0" || row["returned_from_retry"] != "0" {
			t.Errorf("at %s s, with the breaker open: applied %s, retried %s, parked %s, from retry %s", row["elapsed_seconds"],
				row["applied"], row["retried"], row["parked"], row["returned_from_retry"])
		}
		unacked := atoi(t, row["unacked"])
		if unacked > prefetchOfAll {
			t.Errorf("at %s s %s messages are held, want at most %d", row["elapsed_seconds"], row["unacked"], prefetchOfAll)
		}
		held = max(held, unacked)
	}
	if open < 4 || held == 0 {
		t.Errorf("open for %d whole seconds with %d held: the accident is missing", open, held)
	}
}

// prefetchOfAll is what the profile's two workers hold at most.
const prefetchOfAll = 2 * 50

// series reads series.csv, each row by column.
func series(t *testing.T, r run) []map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join(r.dir, "series.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil || len(lines) < 2 {
		t.Fatalf("series.csv has %d lines: %v", len(lines), err)
	}
	rows := make([]map[string]string, 0, len(lines)-1)
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
