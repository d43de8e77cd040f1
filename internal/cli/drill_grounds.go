package cli

import (
	"context"
	"errors"
	"fmt"

	"spillway/internal/experiment"
	"spillway/internal/fault"
	"spillway/internal/profile"
	"spillway/internal/stack"
)

// drillGrounds are the servers that drills share, one set at a time: those with a larger cluster come when the first drill needs it.
type drillGrounds struct {
	app   *app
	flags serverFlags
	panel *panel

	nodes   int // of the broker that is there; 0 while none is
	servers experiment.Servers
	stop    func() error // nil while nothing is to be stopped
}

// of returns servers for a profile. The error wraps fault.ErrUnavailable where its cluster cannot be had here.
func (g *drillGrounds) of(ctx context.Context, p *profile.Profile) (experiment.Servers, error) {
	if p.Topology.Nodes <= g.nodes {
		return g.servers, nil
	}
	if err := g.leave(); err != nil {
		return experiment.Servers{}, err
	}
	servers, stop, err := g.app.servers(ctx, g.flags, p, g.panel)
	if errors.Is(err, stack.ErrNoCluster) {
		return servers, fmt.Errorf("%w: %w", fault.ErrUnavailable, err)
	}
	if err != nil {
		return servers, err
	}
	g.nodes, g.servers, g.stop = p.Topology.Nodes, servers, stop
	return servers, nil
}

// leave stops what was started.
func (g *drillGrounds) leave() error {
	if g.stop == nil {
		return nil
	}
	stop := g.stop
	g.nodes, g.stop = 0, nil
	return stop()
}
