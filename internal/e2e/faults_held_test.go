//go:build linux

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"spillway/internal/broker/rabbit"
	"spillway/internal/profile"
)

// harassed runs a profile with faults that need no server of their own, on the shared ones, and holds that each of them left the
// marks of its row.
func harassed(t *testing.T, text string) run {
	t.Helper()
	s := sharedServers(t)
	stdin := "name: harassed\ntopology: {time_scale: 0.02}\n" + text
	r := runProfile(t, call{args: []string{"run", "-"}, env: s.env(), stdin: stdin}, 0)
	r.noErrors(t)
	s.nothingLeft(t, r.Run.ID)
	if r.Messages.DuplicateEffects+r.Messages.MissingEffects != 0 {
		t.Errorf("account %+v", r.Messages)
	}
	for _, f := range r.Faults {
		t.Logf("%s from %.1f to %.1f s: %v", f.Kind, f.StartSeconds, f.EndSeconds, f.Evidence)
		i := slices.IndexFunc(profile.FaultKinds(), func(k profile.FaultKind) bool { return k.Name == f.Kind })
		known := func(name string) bool {
			return slices.ContainsFunc(profile.FaultKinds()[i].Marks, func(m profile.Mark) bool { return m.Name == name })
		}
		for name := range f.Evidence {
			if !known(name) {
				t.Errorf("%s has the mark %q, of which its row knows nothing", f.Kind, name)
			}
		}
	}
	return r
}

func TestADatabaseThatIsHeldUpLosesNothing(t *testing.T) {
	t.Parallel()
	r := harassed(t, `load: {rate: 300, duration: 9s, warmup: 0s, sku_draw: {hot_share: 0.2}}
faults:
  - {kind: postgres.pool-squeeze, from: 500ms, for: 1500ms}
  - {kind: postgres.held-snapshot, from: 3s, for: 1500ms}
  - {kind: postgres.row-lock, from: 6s, for: 1500ms}
`)
	if m := r.Messages; m.Lost != 0 || m.Applied != m.Offered {
		t.Errorf("account %+v", m)
	}
	for _, mark := range [][2]string{
		{"postgres.pool-squeeze", "pool_waits"}, {"postgres.held-snapshot", "horizon_transactions"},
		{"postgres.held-snapshot", "dead_tuples"}, {"postgres.row-lock", "sessions_waiting"},
	} {
		if n := r.evidence(t, mark[0], mark[1]); n < 1 {
			t.Errorf("%s: %s is %v", mark[0], mark[1], n)
		}
	}
}

func TestATopologyTakenApartLosesNothing(t *testing.T) {
	t.Parallel()
	r := harassed(t, `load: {rate: 300, duration: 10s, warmup: 0s, bad: [{kind: bad-json, share: 0.03}]}
faults:
  - {kind: topology.binding-removed, from: 500ms, for: 1s}
  - {kind: topology.parking-unavailable, from: 3s, for: 1500ms}
  - {kind: topology.parking-unavailable, from: 6s, for: 1500ms, by: length}
expect: {confirmed_shortage: any}
`)
	m := r.Messages
	if m.Lost != 0 || m.Returned == 0 || m.Confirmed+m.Returned != m.Offered || m.Applied+m.Parked != m.Confirmed {
		t.Errorf("account %+v, want returned ones and all others applied or parked", m)
	}
	if n := r.evidence(t, "topology.binding-removed", "returned"); n != float64(m.Returned) {
		t.Errorf("%v returned in the window, %d in all", n, m.Returned)
	}
	for _, f := range r.Faults[1:] {
		if f.Evidence["copies_refused"] < 1 {
			t.Errorf("%s left %v", f.Kind, f.Evidence)
		}
	}
}

// TestTiersWithoutAPolicyLoseWhatLiesInThem: it is the broker's way, so the profile declares it, and the account has to find it.
func TestTiersWithoutAPolicyLoseWhatLiesInThem(t *testing.T) {
	t.Parallel()
	r := harassed(t, `load: {rate: 400, duration: 5s, warmup: 0s}
workers: {fail: {transient: 0.2}}
drain: {timeout: 4s}
faults: [{kind: topology.policy-removed, from: 2s, for: 1s}]
expect: {lost: 500, queued: any}
`)
	m := r.Messages
	if m.Lost == 0 || m.QueuedAtEnd == 0 || m.Applied+m.Parked+m.QueuedAtEnd+m.Lost != m.Offered {
		t.Errorf("account %+v, want some lost and some stranded", m)
	}
	if n := r.evidence(t, "topology.policy-removed", "overdue_retries"); n < 1 {
		t.Errorf("%v retries were overdue", n)
	}
}

func TestANetworkThatIsSlowOrBreaksLosesNothing(t *testing.T) {
	t.Parallel()
	r := harassed(t, `load: {rate: 300, duration: 14s, warmup: 0s}
faults:
  - {kind: network.delay, from: 500ms, for: 1s, delay: 200ms}
  - {kind: network.delay, from: 500ms, for: 1s, delay: 200ms, target: database}
  - {kind: network.jitter, from: 3s, for: 1s}
  - {kind: network.jitter, from: 3s, for: 1s, target: database}
  - {kind: network.bandwidth, from: 5500ms, for: 1500ms}
  - {kind: network.bandwidth, from: 5500ms, for: 1500ms, target: database, bandwidth: 4096}
  - {kind: network.reset, from: 9s, for: 1s}
  - {kind: network.reset, from: 11500ms, for: 1s, target: database}
`)
	if m := r.Messages; m.Lost != 0 || m.Applied != m.Offered || m.Confirmed != m.Offered {
		t.Errorf("account %+v", m)
	}
	for _, f := range r.Faults {
		if strings.HasPrefix(f.Kind, "network.") && f.Kind != "network.reset" && f.Evidence["slow_answers"] < 1 {
			t.Errorf("%s left %v", f.Kind, f.Evidence)
		}
	}
	if len(r.Faults) != 8 || r.Signals.Reconnects < 1 {
		t.Errorf("%d faults, %d reconnects", len(r.Faults), r.Signals.Reconnects)
	}
}

// TestEventsOfRefusalsGetOutOfABadNetwork breaks the connections of the relays on both sides, and lets their claims be late.
func TestEventsOfRefusalsGetOutOfABadNetwork(t *testing.T) {
	t.Parallel()
	r := harassed(t, `load: {rate: 200, duration: 9s, warmup: 0s}
workers: {fail: {refused: 0.3}}
inbox: {events: {batch: 16}}
faults:
  - {kind: network.reset, from: 1s, for: 500ms, target: database}
  - {kind: network.reset, from: 3500ms, for: 500ms}
  - {kind: network.delay, from: 6s, for: 1s, delay: 200ms, target: database}
`)
	e, m := r.Inbox.Events, r.Messages
	if e == nil || m.Refused == 0 || e.Refused != m.Refused || e.Rows != e.Refused || e.Distinct != e.Rows || e.Unsent != 0 {
		t.Errorf("%d refused, events %+v; want one for each", m.Refused, e)
	}
	if m.Lost != 0 || m.Applied+m.Refused != m.Offered {
		t.Errorf("account %+v", m)
	}
}

func TestAKilledBrokerKeepsWhatItConfirmed(t *testing.T) {
	t.Parallel()
	r := broken(t, "rate: 300, duration: 10s", "{kind: broker.kill, from: 4s, for: 1s}")
	if silent := r.evidence(t, "broker.kill", "silent_seconds"); silent < 1 {
		t.Errorf("the broker was silent for %v s, want 1 and more", silent)
	}
	if r.Messages.Confirmed != r.Messages.Offered || r.Signals.Reconnects < 3 {
		t.Errorf("%d reconnects, account %+v", r.Signals.Reconnects, r.Messages)
	}
}

// TestWhatAKilledRunHasBrokenIsMendedByTheStacksSupervisor kills a run while the broker is frozen by it, for an hour.
func TestWhatAKilledRunHasBrokenIsMendedByTheStacksSupervisor(t *testing.T) {
	t.Parallel()
	env := ownStack(t)
	p := start(t, call{args: []string{"run", "-", "--quiet"}, env: env, stdin: `name: killed
load: {rate: 100, duration: 2h}
faults: [{kind: broker.freeze, from: 0s, for: 1h}, {kind: postgres.freeze, from: 0s, for: 1h}]
`})
	s := leaseFrom(t, env)
	eventually(t, "two frozen servers", func() bool { return frozen(t, s) == 2 })
	p.signal(syscall.SIGKILL)
	<-p.done
	eventually(t, "two servers that go on", func() bool { return frozen(t, s) == 0 })
	s.connect(t)
	vhosts, err := s.api(t).ListVhosts(t.Context(), rabbit.VhostPrefix)
	if err != nil || len(vhosts) == 0 {
		t.Errorf("the broker answers %v, %v", vhosts, err)
	}
	for _, vhost := range vhosts {
		s.discard(t, strings.TrimPrefix(vhost, rabbit.VhostPrefix))
	}
}
