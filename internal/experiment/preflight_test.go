package experiment

import (
	"errors"
	"strings"
	"testing"

	"spillway/internal/fault"
	"spillway/internal/profile"
)

func TestAStrategyThatTheBrokerLacksIsRefusedByName(t *testing.T) {
	t.Parallel()
	for version, has := range map[string]bool{"3.10.8": false, "4.2.1": false, "4.3.0": false, "4.3.1": true, "4.3.6": true, "4.10.0": true, "5.0.0-rc.1": true, "unknown": false} {
		r := &run{o: Options{Profile: &profile.Profile{}}, brokerAt: version}
		r.o.Profile.Topology.Strategy = profile.StrategyDelayedRetry
		err := r.checkStrategy()
		if (err == nil) != has {
			t.Errorf("RabbitMQ %s: %v, want refusal %v", version, err, !has)
		}
		if err != nil && (!errors.Is(err, fault.ErrUnavailable) || !errors.Is(err, ErrEnvironment) || !strings.Contains(err.Error(), "needs RabbitMQ 4.3.1 or later, and this one is "+version)) {
			t.Errorf("RabbitMQ %s: %v", version, err)
		}
		if r.o.Profile.Topology.Strategy = profile.StrategyTTLTiers; r.checkStrategy() != nil {
			t.Errorf("RabbitMQ %s has no tiers", version)
		}
	}
}
