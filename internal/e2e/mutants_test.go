package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"spillway/internal/result"
)

// mutation is a defect put into a copy of one file: a text, which must be there exactly once, becomes another.
type mutation struct{ file, from, to string }

// The guarantees of the path under test, each broken in the way that a real defect would break it.
var (
	// noClaim lets every delivery of a message through to its effect.
	noClaim = []mutation{
		{"workers/inbox/transaction.go", "if !claimed {", "if false && !claimed {"},
	}
	// ackBeforeRetry is a worker that acks first and is killed before it has published the copy, for one message in five.
	ackBeforeRetry = []mutation{{
		"workers/settle.go", "	at, ok := s.deliver(ctx, &m)\n	if !ok {\n		return release\n	}\n	s.cfg.Observer.Retried(",
		"	if d.Headers.Seq%5 == 0 {\n		return ack\n	}\n	at, ok := s.deliver(ctx, &m)\n	if !ok {\n		return release\n	}\n	s.cfg.Observer.Retried(",
	}}
	// noEffect claims the id and commits without the effect, for one message in five.
	noEffect = []mutation{{
		"workers/inbox/transaction.go", "	last.Queue(sqlLogEffect,", "	if c.Seq%5 == 0 {\n		last.Queue(sqlCommit).Exec(committed)\n" +
			"		return result, conn.SendBatch(ctx, &last).Close()\n	}\n	last.Queue(sqlLogEffect,",
	}}
	// returnedIsConfirmed believes the confirm that RabbitMQ sends for a message without a route.
	returnedIsConfirmed = []mutation{{
		"internal/broker/rabbit/settle.go", "outcome, reason = broker.Returned, why\n", "outcome, reason = broker.Confirmed, why\n",
	}}
	// parkingNotRead leaves the parking lot out of the audit.
	parkingNotRead = []mutation{{
		"internal/experiment/audit.go", "	for queue, messages := range lying {\n",
		"	delete(lying, r.plan.Parking)\n	for queue, messages := range lying {\n",
	}}
	// effectsNotRead leaves the effects out of the audit.
	effectsNotRead = []mutation{{
		"internal/experiment/audit.go", "			truth.Effects(e.Seq, int64(e.Applied), int64(e.Refused))\n", "			_ = e\n",
	}}
)

// mutant builds this repository with the mutations in it. The compiler reads changed copies of the files in place of the
// files (go help build, -overlay), so the tree stays as it is and only the packages that see a change are built anew.
func mutant(t *testing.T, mutations []mutation) string {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for i, m := range mutations {
		changed := filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(changed, m.apply(t), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(suite.repository, m.file)] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "spillway")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := build(suite.repository, binary, "-overlay="+file); err != nil {
		t.Fatal(err)
	}
	return binary
}

// apply returns the changed file. A text that is not there means that the code has moved on: the mutation must follow.
func (m mutation) apply(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(suite.repository, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), m.from); n != 1 {
		t.Fatalf("%s holds %q %d times, want once: adapt the mutation to the code", m.file, m.from, n)
	}
	return []byte(strings.Replace(string(data), m.from, m.to, 1))
}

// Every scenario here is also run with the code as it is, by the test that is named beside it, and breaks nothing there:
// what a mutant is found guilty of is the mutation's fault.
func TestABrokenGuaranteeIsFound(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for name, row := range map[string]struct {
		mutations []mutation
		scenario  func(t *testing.T, s shared, binary string, want int) run
		finding   string // its code
		names     string // and what its message names
	}{
		// TestRedeliveriesChangeNothing
		"the claim removed from the inbox": {noClaim, withRedeliveries, "duplicate-effects", "duplicate effects"},
		// TestTransientFailuresAreRetriedUntilApplied
		"an ack before the retry is published, and the worker killed": {ackBeforeRetry, withFailures, "lost", "lost"},
		// TestSteadyAccountsForEveryMessageAndLeavesNothing
		"an effect dropped after the claim":   {noEffect, steadily, "missing-effects", "missing effects"},
		"effects that the audit did not read": {effectsNotRead, steadily, "missing-effects", "missing effects"},
		// TestMessagesWithoutARouteAreReturnedAndNeverTakenForSent
		"a returned publish counted as confirmed": {returnedIsConfirmed, withoutARoute, "lost", "lost"},
		// TestPoisonIsParkedOnTheFirstAttempt
		"a parking lot that the audit did not read": {parkingNotRead, poisonous, "lost", "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := row.scenario(t, s, mutant(t, row.mutations), 4)
			if message := r.finding(t, row.finding); !strings.Contains(message, row.names) {
				t.Errorf("finding %q does not name %q", message, row.names)
			}
			if n := r.Messages.Lost + r.Messages.DuplicateEffects + r.Messages.MissingEffects; n == 0 || r.Verdict != result.Fail {
				t.Errorf("verdict %q with the account %+v", r.Verdict, r.Messages)
			}
			s.discard(t, r.Run.ID)
		})
	}
}
