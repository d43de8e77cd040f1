package e2e

import (
	"path/filepath"
	"testing"
)

// The scenarios: each runs one binary, "" for the code as it is, against the shared servers, and returns a result whose
// exit code is the wanted one.

// briefly keeps a run that lost something from waiting a minute for it.
var briefly = []string{"--set", "drain.timeout=8s"}

// plainly is the inbox of one transaction a message, which the mutations of the inbox break; the profile's own works in batches.
var plainly = []string{"--set", "inbox.strategy=transaction"}

// steadily is an undisturbed run.
func steadily(t *testing.T, s shared, binary string, want int) run {
	t.Helper()
	return runProfile(t, call{binary: binary, args: short(append(briefly, plainly...)...), env: s.env()}, want)
}

// withFailures lets one attempt in five fail, so that messages travel through the tiers. The inbox is the one that works
// in a single statement; the other scenarios use the plain transaction.
func withFailures(t *testing.T, s shared, binary string, want int) run {
	t.Helper()
	args := short(append(briefly, "--set", "workers.fail.transient=0.2", "--set", "topology.tiers=[50ms, 100ms]",
		"--set", "inbox.strategy=statement")...)
	return runProfile(t, call{binary: binary, args: args, env: s.env()}, want)
}

// withRedeliveries cuts every connection to the broker in the middle of the load. No ack is sent before that, since none of
// their batches can be full or due: what is in the database by then comes again.
func withRedeliveries(t *testing.T, s shared, binary string, want int) run {
	t.Helper()
	p := newProxy(t, hostOf(t, s.uri), nil)
	s.uri = p.before(t, s.uri)
	dir := filepath.Join(t.TempDir(), "out")
	args := short("-z", "5s", "--set", "workers.prefetch=1000", "--set", "workers.ack_batch=1000", "--set", "workers.ack_interval=60s", "-o", dir)
	args = append(args, plainly...)
	began := start(t, call{binary: binary, args: args, env: s.env()})
	began.awaitSecond(2)
	if n := p.cut(); n < 4 { // a publisher, two workers, their republisher
		t.Errorf("%d connections were cut, want 4 or more", n)
	}
	r := readRun(t, began.wait(), dir, want)
	if r.Messages.Redelivered == 0 {
		t.Errorf("nothing was redelivered, so nothing was tested: %+v", r.Messages)
	}
	return r
}

// withoutARoute takes the work queue's binding away before the load: every publish is returned.
func withoutARoute(t *testing.T, s shared, binary string, want int) run {
	t.Helper()
	s, vhost := s.vhost(t)
	prefix := s.predeclare(t, vhost)
	s.unbind(t, vhost, prefix)
	return runProfile(t, call{binary: binary, args: short(append(predeclared(prefix), briefly...)...), env: s.env()}, want)
}

// poisonous is a run with bad messages, always the same ones.
func poisonous(t *testing.T, s shared, binary string, want int) run {
	t.Helper()
	args := []string{"run", "poison", "-r", "400", "-z", "3s", "--set", "seed=7", "--set", "load.warmup=500ms"}
	return runProfile(t, call{binary: binary, args: append(args, briefly...), env: s.env()}, want)
}

func TestRedeliveriesChangeNothing(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := withRedeliveries(t, s, "", 0)
	r.noErrors(t)
	m := r.Messages
	if m.Applied != m.Offered || m.Confirmed != m.Offered || m.Lost+m.DuplicateEffects+m.MissingEffects+m.QueuedAtEnd != 0 {
		t.Errorf("account %+v, want each applied once", m)
	}
	if m.DuplicateDeliveries == 0 || r.Inbox.DuplicatesAbsorbed != m.DuplicateDeliveries {
		t.Errorf("%d duplicate deliveries, %d absorbed; want some, all absorbed", m.DuplicateDeliveries, r.Inbox.DuplicatesAbsorbed)
	}
	if r.Signals.Reconnects < 3 {
		t.Errorf("%d reconnects, want publisher and both workers", r.Signals.Reconnects)
	}
	s.nothingLeft(t, r.Run.ID)
}

func TestTransientFailuresAreRetriedUntilApplied(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := withFailures(t, s, "", 0)
	r.noErrors(t)
	m := r.Messages
	if m.Applied != m.Offered || m.Parked+m.Lost+m.DuplicateEffects+m.QueuedAtEnd != 0 {
		t.Errorf("account %+v, want all applied", m)
	}
	var messages, retries int64
	for text, n := range m.RetriesPerMessage {
		messages += n
		retries += n * int64(atoi(t, text))
	}
	// One in five fails, so 500 messages need about 125 retries; 5 standard deviations are 60.
	if messages != m.Offered || retries != m.RetriesScheduled || retries < 65 || retries > 185 || m.Delivered != m.Offered+retries {
		t.Errorf("retries per message %v, scheduled %d, delivered %d of %d", m.RetriesPerMessage, m.RetriesScheduled, m.Delivered, m.Offered)
	}
	s.nothingLeft(t, r.Run.ID)
}
