package rabbit

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"spillway/internal/broker"
	"spillway/internal/topology"
)

func options(b *bundle, plan *topology.Plan) ProvisionOptions {
	return ProvisionOptions{
		Isolation: IsolationPrefix, Declare: topology.DeclarePolicy, Management: ManagementFull,
		Plan: plan, Driver: b.driver, Client: b.management,
	}
}

func policies(s *topology.Settings) { s.Declare = topology.DeclarePolicy }

func TestAVirtualHostPerRunIsMadeAndRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := b.plan(t, policies)
	o := options(b, plan)
	o.Isolation, o.RunID = IsolationVhost, "test-"+strings.TrimPrefix(b.vhost, VhostPrefix)
	p, err := Provision(deadline(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Vhost() != VhostPrefix+o.RunID || p.NotAudited() != nil {
		t.Errorf("virtual host %q, not audited %v", p.Vhost(), p.NotAudited())
	}
	got, err := b.management.Effective(deadline(t), p.Vhost(), plan.Work)
	if err != nil || got["dead-letter-strategy"] != "at-least-once" || got["delivery-limit"] != "8" {
		t.Errorf("in force is %v (%v)", got, err)
	}
	if _, err := Provision(deadline(t), o); !errors.Is(err, ErrOccupied) {
		t.Errorf("a second run under the same id: %v", err)
	}
	if err := p.Remove(deadline(t)); err != nil {
		t.Fatal(err)
	}
	left, err := b.management.ListVhosts(deadline(t), p.Vhost())
	if err != nil || len(left) != 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

func TestRemoveLeavesWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := b.plan(t, policies)
	admin := adminFor(t, b)
	before := &topology.Plan{Exchanges: plan.Exchanges[:1], Queues: plan.Queues[:1]}
	if err := admin.Declare(deadline(t), before); err != nil {
		t.Fatal(err)
	}
	p, err := Provision(deadline(t), options(b, plan))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if err := admin.VerifyPassive(deadline(t), before); err != nil {
		t.Errorf("what was there before is gone: %v", err)
	}
	missing, err := admin.Missing(deadline(t), plan)
	if err != nil || len(missing.Queues) != len(plan.Queues)-1 || len(missing.Exchanges) != len(plan.Exchanges)-1 {
		t.Errorf("left of ours are %d queues (%v)", len(plan.Queues)-1-len(missing.Queues), err)
	}
	eventually(t, "no policy is left", func() bool {
		in, err := b.management.Effective(deadline(t), b.vhost, plan.Work)
		return err == nil && len(in) == 0
	})
}

func TestAForeignPolicyThatWinsStopsTheRunAndIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := b.plan(t, policies)
	foreign := topology.Policy{
		Name: "foreign", Pattern: "parking", ApplyTo: "queues", Priority: 5000,
		Definition: map[string]any{"message-ttl": 1000},
	}
	if err := b.management.PutPolicy(deadline(t), b.vhost, foreign); err != nil {
		t.Fatal(err)
	}
	_, err := Provision(deadline(t), options(b, plan))
	if !errors.Is(err, ErrPolicyDiffers) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{
		`queue "inventory.orders.parking": message-ttl is "1000", intended is none`,
		`queue "inventory.orders.parking": overflow is not set, intended "reject-publish"`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	missing, err := adminFor(t, b).Missing(deadline(t), plan)
	if err != nil || len(missing.Queues) != len(plan.Queues) {
		t.Errorf("the failed provision left something (%v)", err)
	}
}

func TestArgumentsAreCheckedLikePolicies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := b.plan(t, nil)
	o := options(b, plan)
	o.Declare, o.Management = topology.DeclareArguments, ManagementRead
	p, err := Provision(deadline(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(deadline(t)); err != nil {
		t.Error(err)
	}
}

func TestPredeclaredQueuesAreUsedAsTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declared(t, b, nil)
	plan := b.plan(t, func(s *topology.Settings) { s.Declare = topology.DeclareNone })
	o := options(b, plan)
	o.Isolation, o.Declare, o.Management, o.Client = IsolationPredeclared, topology.DeclareNone, ManagementNone, nil
	p, err := Provision(deadline(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.NotAudited()) == 0 {
		t.Error("without management nothing is reported as not audited")
	}
	if err := p.Remove(deadline(t)); err != nil {
		t.Fatal(err)
	}
	filled(t, b, plan.Orders, "order.created", 1) // still there
	if _, err := Provision(deadline(t), o); !errors.Is(err, ErrOccupied) {
		t.Errorf("a queue that is not empty: %v", err)
	}
}

func TestSettingsThatExcludeEachOtherAreRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ProvisionOptions{
		"a virtual host without full management":  {Isolation: IsolationVhost, Declare: topology.DeclareArguments, Management: ManagementRead, Client: new(Management)},
		"a fresh virtual host with nothing in it": {Isolation: IsolationVhost, Declare: topology.DeclareNone, Management: ManagementFull, Client: new(Management)},
		"predeclared, yet declaring":              {Isolation: IsolationPredeclared, Declare: topology.DeclareArguments, Management: ManagementNone},
		"policies without full management":        {Isolation: IsolationPrefix, Declare: topology.DeclarePolicy, Management: ManagementRead, Client: new(Management)},
		"management without an address":           {Isolation: IsolationPrefix, Declare: topology.DeclareArguments, Management: ManagementRead},
	} {
		if _, err := Provision(t.Context(), o); !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// plainUser makes a user without tags and gives it the rights in the bundle's virtual host.
func plainUser(t *testing.T, b *bundle, tags string, rights Rights) (name, password string) {
	t.Helper()
	name, password = strings.ReplaceAll(b.vhost, "spillway", "user")+tags, "pw"
	m := b.management
	if err := m.put(deadline(t), path("users", name), map[string]string{"password": password, "tags": tags}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.delete(deadline(t), path("users", name)); err != nil {
			t.Error(err)
		}
	})
	if err := m.put(deadline(t), path("permissions", b.vhost, name), rights); err != nil {
		t.Fatal(err)
	}
	return name, password
}

func TestMissingRightsAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user, password := plainUser(t, b, "management", Rights{Configure: "^$", Write: ".*", Read: ".*"})
	uri, management := environment(t)
	d, err := New(Config{URIs: []string{uri}, Username: user, Password: password, Vhost: b.vhost})
	if err != nil {
		t.Fatal(err)
	}
	admin := NewAdmin(d)
	t.Cleanup(admin.Close)
	if err := admin.Declare(deadline(t), b.plan(t, nil)); !errors.Is(err, broker.ErrRightMissing) {
		t.Errorf("declare without the right: %v", err)
	}
	m, err := NewManagement(ManagementConfig{URL: management, Username: user, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	err = m.CreateVhost(deadline(t), b.vhost+"-other", user)
	if !errors.Is(err, broker.ErrRightMissing) && !errors.Is(err, broker.ErrLoginRefused) {
		t.Errorf("a virtual host without the tag: %v", err)
	}
	for _, c := range Doctor(deadline(t), d, m) {
		if c.Name == "user tags" && (c.OK || c.Fix == "") {
			t.Errorf("the doctor says %+v", c)
		}
	}
}

func TestTheDoctorPassesAGoodBroker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	checks := Doctor(deadline(t), b.driver, b.management)
	if len(checks) != 7 {
		t.Errorf("%d checks", len(checks))
	}
	for _, c := range checks {
		if !c.OK || c.Detail == "" || c.Fix != "" {
			t.Errorf("%+v", c)
		}
	}
	if c := Doctor(deadline(t), b.driver, nil); len(c) != 2 || c[1].OK || c[1].Fix == "" {
		t.Errorf("without management: %+v", c)
	}
}

func TestAManagementAPIThatCannotBeUsedIsTold(t *testing.T) {
	t.Parallel()
	_, management := environment(t)
	for name, row := range map[string]struct {
		config ManagementConfig
		want   error
	}{
		"nobody listens":   {ManagementConfig{URL: "http://guest:secret@127.0.0.1:1"}, broker.ErrUnreachable},
		"a wrong password": {ManagementConfig{URL: management, Username: "guest", Password: "secret"}, broker.ErrLoginRefused},
	} {
		m, err := NewManagement(row.config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = m.Overview(deadline(t)); !errors.Is(err, row.want) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		m.Close()
	}
	for _, bad := range []string{"", "ftp://x", "http://", "http://user:secret#@x"} {
		if _, err := NewManagement(ManagementConfig{URL: bad}); !errors.Is(err, ErrBadManagementURL) || strings.Contains(err.Error(), "secret") {
			t.Errorf("address %q: %v", bad, err)
		}
	}
	m := Management{}
	if err := m.refusal("http://x", http.MethodGet, "/api/x", 500, []byte("not json")); !errors.Is(err, ErrManagement) {
		t.Errorf("an internal error: %v", err)
	}
}

func TestQueueStatisticsAndNodesAreRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	filled(t, b, plan.Orders, "order.created", 3)
	eventually(t, "the statistics show the messages", func() bool {
		q, err := b.management.Queue(deadline(t), b.vhost, plan.Work)
		return err == nil && q.Ready == 3 && q.Total == 3 && q.DeadLetterPending == 0
	})
	nodes, err := b.management.Nodes(deadline(t))
	if err != nil || len(nodes) == 0 || !slices.Contains(nodes[0].Plugins, "rabbitmq_management") {
		t.Errorf("nodes are %+v (%v)", nodes, err)
	}
	if _, err := b.management.Queue(deadline(t), b.vhost, "absent"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an absent queue: %v", err)
	}
}
