package e2e

import (
	"strings"
	"testing"
)

// TestAClusterThatIsCutAndLosesItsLeaderLosesNothing runs on three nodes of its own, with publishers and workers on each of
// them. The larger part and the new leader go on, and what the smaller part held back is answered later. It runs beside no other
// test: three brokers take what a small machine has.
func TestAClusterThatIsCutAndLosesItsLeaderLosesNothing(t *testing.T) { //nolint:paralleltest // see above
	r := runProfile(t, call{args: append([]string{"run", "-"}, rootFlag()...), env: []string{"XDG_CACHE_HOME=" + t.TempDir()}, stdin: `name: cluster
load: {rate: 200, duration: 26s, publishers: 3, shed_after: 60s}
workers: {count: 3, heartbeat: 2s}
topology: {nodes: 3, delivery_limit: -1}
faults:
  - {kind: broker.partition, from: 1s, for: 3s}
  - {kind: broker.leader-loss, from: 16s, for: 2s}
`}, 0)
	if m := r.Messages; m.Lost+m.DuplicateEffects+m.MissingEffects+m.Parked != 0 || m.Applied != 5200 {
		t.Errorf("account %+v", m)
	}
	for _, kind := range []string{"broker.partition", "broker.leader-loss"} {
		if missing, changes := r.evidence(t, kind, "nodes_missing"), r.evidence(t, kind, "leader_changes"); missing != 1 || changes != 1 {
			t.Errorf("%s: %v nodes were missing and the leader changed %v times, want 1 and 1", kind, missing, changes)
		}
	}
	if nodes := r.Environment.Broker.Nodes; nodes == nil || *nodes != 3 {
		t.Errorf("nodes %v, want 3", nodes)
	}
}

func TestAClusterThatIsTooSmallIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	end := spillway(t, call{args: short("--set", "topology.nodes=3"), env: s.env()})
	if end.code != 6 || !strings.Contains(end.stderr, "the broker has 1 of the 3 nodes that topology.nodes asks for") {
		t.Errorf("exit %d, %s", end.code, end.said())
	}
}
