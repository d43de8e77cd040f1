package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// byPrefix are the settings of a run in a virtual host that it shares with others.
func byPrefix(declare, management string) []string {
	return []string{
		"--set", "topology.isolation=prefix", "--set", "topology.declare=" + declare, "--set", "topology.management=" + management,
	}
}

// predeclared are the settings of a run on a topology that is there already.
func predeclared(prefix string) []string {
	return []string{
		"--set", "topology.isolation=predeclared", "--set", "topology.declare=none", "--set", "topology.prefix=" + prefix,
	}
}

// predeclare makes a topology for others to use, as a run leaves it with --keep, and returns its prefix.
func (s shared) predeclare(t *testing.T, vhost string, more ...string) string {
	t.Helper()
	const prefix = "theirs"
	args := append(byPrefix("policy", "full"), "--set", "topology.prefix="+prefix, "--keep", "-z", "1s")
	args = append(args, more...)
	r := runProfile(t, call{args: short(args...), env: s.env()}, 0)
	s.discard(t, r.Run.ID)
	if len(s.queues(t, vhost)) < 5 {
		t.Fatalf("queues are %v, want work, tiers and parking kept", s.queues(t, vhost))
	}
	return prefix
}

// unbind takes the bindings of the work queue away.
func (s shared) unbind(t *testing.T, vhost, prefix string) {
	t.Helper()
	path := "/api/bindings/" + vhost + "/e/" + prefix + ".orders/q/" + prefix + ".inventory.orders/order.*"
	s.request(t, http.MethodDelete, path, nil)
}

func TestARunByPrefixRemovesItsOwnQueuesAndNoOther(t *testing.T) {
	t.Parallel()
	s, vhost := sharedServers(t).vhost(t)
	s.request(t, http.MethodPut, "/api/queues/"+vhost+"/inventory.orders", map[string]any{"durable": true})
	policy := map[string]any{"pattern": "^inventory", "definition": map[string]any{"max-length": 7}, "apply-to": "queues"}
	s.request(t, http.MethodPut, "/api/policies/"+vhost+"/theirs", policy)

	r := runProfile(t, call{args: short(byPrefix("policy", "full")...), env: s.env()}, 0)
	r.noErrors(t)
	if m := r.Messages; m.Applied != 500 || m.Lost != 0 {
		t.Errorf("account %+v, want 500 applied", m)
	}
	if queues := s.queues(t, vhost); !slices.Equal(queues, []string{"inventory.orders"}) {
		t.Errorf("queues are %v, want theirs alone", queues)
	}
	if policies := s.names(t, "/api/policies/"+vhost); !slices.Equal(policies, []string{"theirs"}) {
		t.Errorf("policies are %v, want theirs alone", policies)
	}
	exchanges := s.names(t, "/api/exchanges/"+vhost)
	if slices.ContainsFunc(exchanges, func(name string) bool { return strings.Contains(name, "orders") }) {
		t.Errorf("exchanges are %v, want none of the run's", exchanges)
	}
}

func TestARunWithoutManagementIsNotAuditedAndNeverPasses(t *testing.T) {
	t.Parallel()
	s, _ := sharedServers(t).vhost(t)
	s.management = ""
	r := runProfile(t, call{args: short(byPrefix("arguments", "none")...), env: s.env()}, 5)
	if message := r.finding(t, "account"); !strings.Contains(message, "not audited") || !strings.Contains(message, "management API") {
		t.Errorf("finding %q does not say what is not audited, and for lack of what", message)
	}
	if m := r.Messages; m.Applied != 500 || m.Confirmed != 500 || m.Lost != 0 {
		t.Errorf("account %+v, want what can be proved: 500 confirmed and applied", m)
	}
	sharedServers(t).discard(t, r.Run.ID)
}

func TestARunOnAPredeclaredTopologyLeavesItAsItWas(t *testing.T) {
	t.Parallel()
	s, vhost := sharedServers(t).vhost(t)
	prefix := s.predeclare(t, vhost)
	before := s.queues(t, vhost)
	r := runProfile(t, call{args: short(predeclared(prefix)...), env: s.env()}, 0)
	r.noErrors(t)
	if after := s.queues(t, vhost); !slices.Equal(before, after) {
		t.Errorf("queues were %v, are %v", before, after)
	}
	if r.Messages.Applied != 500 {
		t.Errorf("account %+v, want 500 applied", r.Messages)
	}
	s.nothingLeft(t, r.Run.ID)
}

func TestMessagesWithoutARouteAreReturnedAndNeverTakenForSent(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := withoutARoute(t, s, "", 5) // no confirm latency is recorded for what was returned, so nothing was measured
	m := r.Messages
	if m.Returned != m.Offered || m.Confirmed != 0 || m.Lost != 0 || m.Applied != 0 {
		t.Errorf("account %+v, want all returned", m)
	}
	s.discard(t, r.Run.ID)
}
