package e2e

import (
	"slices"
	"strconv"
	"testing"

	"spillway/internal/result"
)

// broken runs a load with faults on servers that it may break. Whatever happens to the servers, nothing is lost or applied twice,
// and each fault has to prove that it was felt.
func broken(t *testing.T, load, faults string, args ...string) run {
	t.Helper()
	const common = "inbox: {strategy: batch}\nworkers: {prefetch: 128, concurrency: 64, ack_batch: 32}\ntopology: {time_scale: 0.02}\n"
	stdin := "name: broken\nload: {" + load + ", warmup: 0s}\n" + common + "faults: [" + faults + "]\n"
	r := runProfile(t, call{args: append([]string{"run", "-"}, args...), env: ownStack(t), stdin: stdin}, 0)
	m := r.Messages
	if m.Lost != 0 || m.DuplicateEffects != 0 || m.MissingEffects != 0 || m.Confirmed != m.Offered || m.Applied+m.Parked != m.Offered {
		t.Errorf("account %+v", m)
	}
	for _, f := range r.Faults {
		t.Logf("%s from %.1f to %.1f s: %v", f.Kind, f.StartSeconds, f.EndSeconds, f.Evidence)
	}
	return r
}

// fault returns the run's only fault of a kind.
func (r run) fault(t *testing.T, kind string) result.Fault {
	t.Helper()
	i := slices.IndexFunc(r.Faults, func(f result.Fault) bool { return f.Kind == kind })
	if i < 0 {
		t.Fatalf("there was no %s: %+v", kind, r.Faults)
	}
	return r.Faults[i]
}

// evidence returns one mark of it.
func (r run) evidence(t *testing.T, kind, mark string) float64 {
	t.Helper()
	return r.fault(t, kind).Evidence[mark]
}

// quantile reads a latency that has to be there.
func quantile(t *testing.T, s *result.Latency, of func(*result.Latency) float64) float64 {
	t.Helper()
	if s == nil {
		t.Fatal("a latency has no samples")
	}
	return of(s)
}

func p99(l *result.Latency) float64 { return l.P99 }

// TestAFrozenBrokerShowsInAcceptanceAndNotInConfirm stops the broker for 3 s in 20, with one message in two hundred under way, so
// that they are behind p99. The messages that were due meanwhile waited,
// though few were under way: the latency from the due instant says so, that from the sending does not. Afterwards the late ones
// come in below the bound.
func TestAFrozenBrokerShowsInAcceptanceAndNotInConfirm(t *testing.T) {
	t.Parallel()
	r := broken(t, "rate: 1000, duration: 20s, confirm_window: 100", "{kind: broker.freeze, from: 5s, for: 3s}")
	if got := quantile(t, r.Latency.Acceptance, p99); got < 2.5 {
		t.Errorf("acceptance p99 is %v s, want at least 2.5", got)
	}
	if got := quantile(t, r.Latency.Confirm, p99); got >= 0.5 {
		t.Errorf("confirm p99 is %v s, want below 0.5", got)
	}
	if silent := r.evidence(t, "broker.freeze", "silent_seconds"); silent < 2.5 || silent > 5 {
		t.Errorf("silent for %v s, want about 3", silent)
	}
	for _, row := range series(t, r) {
		sent, err := strconv.ParseFloat(row["sent"], 64)
		if err != nil || sent > 1000*1.25*1.03 { // a row is a second within some milliseconds
			t.Errorf("%v messages were sent in the second that ends at %s (%v)", sent, row["elapsed_seconds"], err)
		}
	}
}

// TestABrokerUnderAlarmBlocksAndLosesNothing raises the memory alarm for 5 s and the disk alarm for 2: the run ends on time.
// A busy machine raises and clears an alarm late, since each takes a process of the broker's command line.
func TestABrokerUnderAlarmBlocksAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := broken(t, "rate: 500, duration: 15s", "{kind: broker.memory-alarm, from: 2s, for: 5s}, {kind: broker.disk-alarm, from: 11s, for: 2s}")
	for kind, least := range map[string]float64{"broker.memory-alarm": 3, "broker.disk-alarm": 0.5} {
		f := r.fault(t, kind)
		if blocked := f.Evidence["blocked_seconds"]; blocked < least || blocked > f.EndSeconds-f.StartSeconds {
			t.Errorf("%s: blocked for %v s of %v s, want at least %v", kind, blocked, f.EndSeconds-f.StartSeconds, least)
		}
	}
	if end := r.Phases[len(r.Phases)-1].EndSeconds; end > 45 {
		t.Errorf("the run took %v s", end)
	}
}

// TestConnectionsClosedByTheBrokerLoseNothing closes them ten times. Messages whose answer was lost are published again under the
// same id; those whose ack was lost come again and change nothing; the delivery limit counts each return.
func TestConnectionsClosedByTheBrokerLoseNothing(t *testing.T) {
	t.Parallel()
	r := broken(t, "rate: 500, duration: 38s", "{kind: broker.close-connections, from: 1s, for: 32s, times: 10}", "--set", "expect.parked=0")
	rounds, reconnects := r.evidence(t, "broker.close-connections", "rounds"), r.evidence(t, "broker.close-connections", "reconnects")
	if rounds != 10 || reconnects < 30 { // a publisher and two workers each time, and the republisher
		t.Errorf("%v rounds and %v reconnects, want 10 and at least 30", rounds, reconnects)
	}
	m := r.Messages
	if m.Republished == 0 || m.Redelivered == 0 {
		t.Errorf("%d messages were published again and %d delivered again: what is broken in flight is neither", m.Republished, m.Redelivered)
	}
	if longest := quantile(t, r.Latency.Confirm, func(l *result.Latency) float64 { return l.Max }); longest > 5 {
		t.Errorf("the longest confirm took %v s", longest)
	}
}

// TestServersThatStopOrFreezeLoseNothing breaks one after the other.
func TestServersThatStopOrFreezeLoseNothing(t *testing.T) {
	t.Parallel()
	r := broken(t, "rate: 300, duration: 30s",
		"{kind: broker.restart, from: 2s, for: 2s}, {kind: postgres.freeze, from: 16s, for: 2s}, {kind: postgres.stop, from: 23s, for: 2s}")
	if silent := r.evidence(t, "broker.restart", "silent_seconds"); silent < 2 {
		t.Errorf("the broker was silent for %v s, want 2 and more", silent)
	}
	if silent := r.evidence(t, "postgres.freeze", "silent_seconds"); silent < 1.5 {
		t.Errorf("the database was silent for %v s, want about 2", silent)
	}
}
