package experiment

import (
	"strings"

	"spillway/internal/broker/rabbit"
	"spillway/internal/profile"
	"spillway/internal/topology"
)

// FaultObstacle says which setting of the profile keeps it from having a fault; "" when none does. A killed run leaves the topology
// as it is, which harms nobody where nobody else uses it: so what is not the run's own is not taken apart.
func FaultObstacle(p *profile.Profile, f profile.Fault) string {
	family, _, _ := strings.Cut(f.Kind, ".")
	t := &p.Topology
	byPolicy := f.Kind == profile.FaultPolicyRemoved || (f.Kind == profile.FaultParkingUnavailable && f.By == profile.ByLength)
	switch {
	case family == "postgres" && !p.NeedsDatabase():
		return "inbox.strategy is none, so the run has no database"
	case family == "topology" && t.Isolation == rabbit.IsolationPredeclared:
		return "topology.isolation is predeclared, and what is not the run's own is not taken apart; set it to vhost or prefix"
	case byPolicy && t.Declare != topology.DeclarePolicy:
		return "topology.declare is " + t.Declare + ", and only policies can be changed under load; set it to policy"
	default:
		return ""
	}
}

func (r *run) obstacle(f profile.Fault) string { return FaultObstacle(r.o.Profile, f) }
