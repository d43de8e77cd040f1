package experiment

import (
	"strings"
	"testing"

	"spillway/internal/profile"
)

func TestWhatIsNotTheRunsOwnIsNotTakenApart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		topology profile.Topology
		strategy string
		fault    profile.Fault
		want     string
	}{
		"a binding of its own":                {profile.Topology{Isolation: "vhost", Declare: "arguments"}, "batch", profile.Fault{Kind: profile.FaultBindingRemoved}, ""},
		"a binding of somebody else's":        {profile.Topology{Isolation: "predeclared", Declare: "none"}, "batch", profile.Fault{Kind: profile.FaultBindingRemoved}, "predeclared"},
		"a policy where there are none":       {profile.Topology{Isolation: "vhost", Declare: "arguments"}, "batch", profile.Fault{Kind: profile.FaultPolicyRemoved}, "arguments"},
		"a full parking lot without a policy": {profile.Topology{Isolation: "vhost", Declare: "arguments"}, "batch", profile.Fault{Kind: profile.FaultParkingUnavailable, By: profile.ByLength}, "arguments"},
		"a parking lot cut off":               {profile.Topology{Isolation: "vhost", Declare: "arguments"}, "batch", profile.Fault{Kind: profile.FaultParkingUnavailable, By: profile.ByBinding}, ""},
		"a policy of its own":                 {profile.Topology{Isolation: "prefix", Declare: "policy"}, "batch", profile.Fault{Kind: profile.FaultPolicyRemoved}, ""},
		"a database that is not there":        {profile.Topology{}, "none", profile.Fault{Kind: profile.FaultRowLock}, "no database"},
		"a network, which is always there":    {profile.Topology{Isolation: "predeclared"}, "none", profile.Fault{Kind: profile.FaultDelay}, ""},
	} {
		got := FaultObstacle(&profile.Profile{Topology: row.topology, Inbox: profile.Inbox{Strategy: row.strategy}}, row.fault)
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want a word of %q", name, got, row.want)
		}
	}
}
