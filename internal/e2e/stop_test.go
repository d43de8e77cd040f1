//go:build linux

package e2e

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"spillway/internal/result"
)

// goneWithin is how soon nothing of a killed run may be left.
const goneWithin = 5 * time.Second

// oneRunsServers lets one test at a time run with servers that the run starts itself: beside ownStack that makes two.
var oneRunsServers sync.Mutex

// alone returns the environment and flags of a run that finds no stack and starts its own servers.
func alone(t *testing.T) (env, flags []string) {
	t.Helper()
	oneRunsServers.Lock()
	t.Cleanup(oneRunsServers.Unlock)
	return []string{"XDG_CACHE_HOME=" + t.TempDir()}, rootFlag()
}

func TestAKilledRunLeavesNoServerAndTheNextRunWorks(t *testing.T) {
	t.Parallel()
	env, flags := alone(t)
	p := start(t, call{args: append([]string{"run", "steady", "-r", "100"}, flags...), env: env})
	p.awaitOutput("s load ")
	started := servers(t, p.cmd.Process.Pid)
	p.signal(syscall.SIGKILL)
	killed := time.Now()
	eventually(t, "the end of all servers", func() bool { return len(alive(t, started)) == 0 })
	if took := time.Since(killed); took > goneWithin {
		t.Errorf("servers were left for %v, want at most %v", took, goneWithin)
	}

	next := append([]string{"run", "steady", "-r", "100", "-z", "2s", "--set", "load.warmup=100ms", "--set", "thresholds=[]"}, flags...)
	r := runProfile(t, call{args: next, env: env}, 0)
	if r.Messages.Applied != 210 {
		t.Errorf("the next run applied %d, want 210", r.Messages.Applied)
	}
}

func TestCtrlCInTheLoadDrainsAuditsAndSaves(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	dir := t.TempDir()
	p := start(t, call{args: []string{"run", "steady", "-r", "200", "--set", "thresholds=[]", "--set", "load.warmup=500ms", "--set", "expect.busy_machine=true", "-o", dir}, env: s.env()})
	p.awaitSecond(2)
	p.signal(syscall.SIGINT)
	end := p.wait()
	res, err := result.Read(dir + "/result.json")
	if end.code != 130 || err != nil {
		t.Fatalf("exit %d, %v\n%s", end.code, err, end.said())
	}
	r := run{end, dir, res}
	r.noErrors(t)
	if r.finding(t, "interrupted") == "" || res.Run.ExitCode != 130 {
		t.Errorf("result.json says exit %d", res.Run.ExitCode)
	}
	m := res.Messages
	if m.Offered < 400 || m.Offered > 4000 || m.Applied != m.Offered || m.Confirmed != m.Offered || m.Lost+m.QueuedAtEnd+m.Shed != 0 {
		t.Errorf("account %+v, want all that was offered in about 2.5 s applied", m)
	}
	s.nothingLeft(t, res.Run.ID)
}

func TestCtrlCWhileTheDatabaseIsStoppedBringsItBackAndDrains(t *testing.T) {
	t.Parallel()
	env := ownStack(t)
	dir := t.TempDir()
	p := start(t, call{args: append(outage("outage"), "--set", "faults.0.for=11s", "-o", dir), env: env})
	p.awaitOutput("fault: postgres.stop begins")
	p.awaitSecond(5) // a second and more of failures
	p.signal(syscall.SIGINT)
	r := readRun(t, p.wait(), dir, 130)
	r.noErrors(t)
	m := r.Messages
	if m.Offered < 800 || m.Offered > 2000 || m.Applied != m.Offered || m.Lost+m.QueuedAtEnd+m.Parked != 0 || m.RetriesScheduled == 0 {
		t.Errorf("account %+v, want what was offered in some 5 s applied, after retries", m)
	}
	if len(r.Faults) != 1 || r.Faults[0].EndSeconds-r.Faults[0].StartSeconds > 9 {
		t.Errorf("faults %+v, want one that was healed before its time", r.Faults)
	}
	leaseFrom(t, env).connect(t) // the database is there again
}

func TestASecondCtrlCAbortsAtOnceAndLeavesNothing(t *testing.T) {
	t.Parallel()
	env, flags := alone(t)
	slow := []string{"run", "steady", "-r", "200", "--set", "workers.rate_limit=20"} // the drain takes its whole minute
	p := start(t, call{args: append(slow, flags...), env: env})
	p.awaitOutput("s load ")
	started := servers(t, p.cmd.Process.Pid)
	p.signal(syscall.SIGINT)
	p.awaitOutput("s drain ")
	p.signal(syscall.SIGINT)
	signalled := time.Now()
	end := p.wait()
	eventually(t, "the end of all servers", func() bool { return len(alive(t, started)) == 0 })
	if took := time.Since(signalled); end.code != 130 || took > goneWithin {
		t.Errorf("exit %d after %v, want 130 at once\n%s", end.code, took, end.said())
	}
}

func TestCtrlCWhileTheServersStartEndsTheRunWithoutServers(t *testing.T) {
	t.Parallel()
	env, flags := alone(t)
	p := start(t, call{args: append([]string{"run", "steady"}, flags...), env: env})
	p.awaitOutput("ready after")
	started := below(t, p.cmd.Process.Pid)
	p.signal(syscall.SIGINT)
	end := p.wait()
	if end.code != 130 || strings.Contains(end.said(), "s load ") {
		t.Errorf("exit %d, want 130 before any load\n%s", end.code, end.said())
	}
	if left := alive(t, started); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
