//go:build linux

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// crewed is a short run whose two workers live in a process each.
func crewed(more ...string) []string {
	return short(append([]string{
		"--set", "workers.processes=2", "--set", "workers.concurrency=8", "--set", "inbox.strategy=transaction", "--set", "topology.delivery_limit=-1", "--set", "drain.timeout=15s",
	}, more...)...)
}

// workerProcesses returns the children of a run.
func workerProcesses(t *testing.T, pid int) []proc {
	t.Helper()
	return slices.DeleteFunc(below(t, pid), func(p proc) bool { return !strings.Contains(p.arguments, "worker") })
}

func TestWorkersInProcessesOfTheirOwnTellAllThatOthersTell(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: crewed("--set", "workers.fail.transient=0.2", "--set", "topology.tiers=[50ms, 100ms]"), env: s.env()}, 0)
	r.noErrors(t)
	m := r.Messages
	if m.Offered != 500 || m.Applied != 500 || m.RetriesScheduled == 0 || m.Delivered != 500+m.RetriesScheduled || m.DuplicateDeliveries != 0 {
		t.Errorf("account %+v", m)
	}
	if n := r.Latency.Service.Count; n != 400 {
		t.Errorf("%d service times, want those of the 400 measured messages", n)
	}
	if p := r.Latency.Sojourn; p.Min <= 0 || p.P50 > 1 {
		t.Errorf("sojourn %+v: the processes' clocks do not agree", p)
	}
	s.nothingLeft(t, r.Run.ID)
}

func TestKilledWorkersAreReplacedAndLoseNothing(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for point, more := range map[string][]string{
		"before-commit": nil,
		"after-commit":  nil,
		"after-retry":   {"--set", "workers.fail.transient=0.3", "--set", "topology.tiers=[50ms, 100ms]"},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			kills := []string{"-z", "4s", "--set", "faults=[{kind: workers.kill, point: " + point + ", times: 5, from: 500ms, for: 3s}]"}
			r := runProfile(t, call{args: crewed(append(kills, more...)...), env: s.env()}, 0)
			r.noErrors(t)
			m := r.Messages
			if m.Applied != m.Offered || m.Lost+m.DuplicateEffects+m.MissingEffects != 0 || m.Redelivered == 0 {
				t.Errorf("account %+v, want each applied once, and redeliveries", m)
			}
			if e := r.Faults[0].Evidence; e["rounds"] != 5 {
				t.Errorf("evidence %v, want five kills", e)
			}
			if point != "before-commit" && m.DuplicateDeliveries < 5 {
				t.Errorf("%d duplicates absorbed, want one for each kill", m.DuplicateDeliveries)
			}
			s.nothingLeft(t, r.Run.ID)
		})
	}
}

func TestAnEarlyAckLosesWhatAKilledWorkerHeld(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for _, ack := range []string{"auto", "on-delivery", "before-commit"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			r := runProfile(t, call{args: crewed("-z", "4s", "--set", "workers.ack="+ack, "--set", "drain.timeout=8s",
				"--set", "faults=[{kind: workers.kill, point: before-commit, times: 5, from: 500ms, for: 3s}]"), env: s.env()}, 4)
			r.finding(t, "lost")
			// An ack before the COMMIT may still be on its way to the socket when the kill comes.
			if m := r.Messages; m.Lost == 0 || m.DuplicateEffects != 0 || m.Applied+m.Lost != m.Offered {
				t.Errorf("account %+v, want messages of the kills lost, and the others applied", m)
			}
			s.discard(t, r.Run.ID)
		})
	}
}

func TestAnEarlyAckAloneLosesNothing(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for _, ack := range []string{"auto", "on-delivery", "before-commit"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			r := runProfile(t, call{args: short("--set", "inbox.strategy=transaction", "--set", "workers.concurrency=8", "--set", "workers.ack="+ack), env: s.env()}, 0)
			r.noErrors(t)
			if m := r.Messages; m.Applied != 500 || m.Delivered != 500 {
				t.Errorf("account %+v", m)
			}
			s.nothingLeft(t, r.Run.ID)
		})
	}
}

func TestAWorkerProcessThatDiesUnaskedMakesTheRunInvalid(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	dir := filepath.Join(t.TempDir(), "out")
	p := start(t, call{args: crewed("-z", "4s", "-o", dir), env: s.env()})
	p.awaitSecond(2)
	if err := syscall.Kill(workerProcesses(t, p.cmd.Process.Pid)[0].pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := readRun(t, p.wait(), dir, 5)
	if message := r.finding(t, "worker-died"); !strings.Contains(message, "killed") {
		t.Errorf("finding %q", message)
	}
	if m := r.Messages; m.Applied != m.Offered {
		t.Errorf("account %+v: another process takes the place", m)
	}
	s.discard(t, r.Run.ID)
}

func TestAKilledRunTakesItsWorkerProcessesWithIt(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	p := start(t, call{args: crewed("-z", "20s"), env: s.env()})
	p.awaitSecond(2)
	crew := workerProcesses(t, p.cmd.Process.Pid)
	if len(crew) != 2 {
		t.Fatalf("worker processes %v, want 2", crew)
	}
	for _, c := range crew {
		if strings.Contains(c.arguments, "amqp") || strings.Contains(c.arguments, "postgres") {
			t.Errorf("arguments %q", c.arguments)
		}
	}
	p.signal(syscall.SIGKILL)
	eventually(t, "the end of the worker processes", func() bool { return len(alive(t, crew)) == 0 })
}

func TestCtrlCStopsWorkerProcessesInOrder(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	dir := filepath.Join(t.TempDir(), "out")
	p := start(t, call{args: crewed("-z", "20s", "-o", dir), env: s.env()})
	p.awaitSecond(2)
	crew := workerProcesses(t, p.cmd.Process.Pid)
	p.signal(syscall.SIGINT)
	r := readRun(t, p.wait(), dir, 130)
	if m := r.Messages; m.Applied != m.Offered || m.QueuedAtEnd != 0 {
		t.Errorf("account %+v, want all that was offered applied", m)
	}
	if left := alive(t, crew); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	s.nothingLeft(t, r.Run.ID)
}

func TestAFrozenWorkerProcessTrapsMessagesUntilTheBrokerGivesItUp(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{args: crewed("-z", "10s", "--set", "workers.heartbeat=2s", "--set", "faults=[{kind: workers.freeze, from: 1s, for: 8s}]"), env: s.env()}, 0)
	r.noErrors(t)
	if m := r.Messages; m.Applied != m.Offered || m.Redelivered == 0 {
		t.Errorf("account %+v, want redeliveries and each applied once", m)
	}
	if age := r.OldestAge.Unsettled; age == nil || age.Max < 2 {
		t.Errorf("oldest %+v, want the trapped messages to show", age)
	}
	s.nothingLeft(t, r.Run.ID)
}
