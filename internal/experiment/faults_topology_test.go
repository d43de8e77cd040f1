package experiment

import (
	"slices"
	"testing"
	"time"

	"spillway/internal/profile"
	"spillway/internal/topology"
)

func TestOnlyTheTiersLoseTheirPolicies(t *testing.T) {
	t.Parallel()
	plan, err := topology.Build(topology.Settings{
		DeadLetterStrategy: topology.AtLeastOnce, DeliveryLimit: 8, DeliveryLimitTo: topology.ToParking, ReturnVia: topology.ViaQueue,
		ParkVia: topology.ViaPublish, Tiers: []time.Duration{time.Second, time.Minute}, Jitter: true, TimeScale: 1,
		Declare: topology.DeclarePolicy, Events: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{plan: plan}
	taken := map[string]bool{}
	for _, p := range r.policiesOf(r.isTier) {
		taken[p.Name] = true
	}
	for _, tier := range plan.Tiers {
		for _, q := range tier.Queues {
			if !taken["spillway."+q.Queue] {
				t.Errorf("queue %s keeps its policy", q.Queue)
			}
		}
	}
	if len(taken) != 6 || len(plan.Queues) != 9 {
		t.Errorf("%d of %d policies are taken, want those of two tiers of three queues: %v", len(taken), len(plan.Queues), taken)
	}
}

// TestTheRelaysOfEventsAreOnTheWorkersSide: else a fault that closes one side's connections would always spare them.
func TestTheRelaysOfEventsAreOnTheWorkersSide(t *testing.T) {
	t.Parallel()
	for side, want := range map[string]bool{profile.SideProducer: false, profile.SideWorkers: true} {
		if got := slices.Contains(connectionsOf(side), eventsConnection); got != want {
			t.Errorf("connections of side %s begin with %v", side, connectionsOf(side))
		}
	}
}
