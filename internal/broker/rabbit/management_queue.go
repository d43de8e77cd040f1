package rabbit

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"spillway/internal/topology"
)

// QueueDetails is what the broker's statistics say of a queue. They are behind by up to quorum_tick_interval, 5 s by
// default; a passive declare is not.
type QueueDetails struct {
	Ready             int `json:"messages_ready"`
	Unacked           int `json:"messages_unacknowledged"`
	DeadLetterPending int `json:"messages_dlx"`     // held by the broker until the dead-letter target confirms (at-least-once)
	Delayed           int `json:"messages_delayed"` // waiting in the queue for a delayed retry (4.3); 0 before
	Total             int `json:"messages"`         // all of the above
	Consumers         int `json:"consumers"`

	Leader  string   `json:"leader"`  // node of a quorum queue that decides
	Members []string `json:"members"` // nodes that hold it
	Online  []string `json:"online"`  // those of them that are up, as the node sees it that was asked
}

// Queue returns the statistics of one queue.
func (m *Management) Queue(ctx context.Context, vhost, queue string) (QueueDetails, error) {
	var q QueueDetails
	if err := m.get(ctx, path("queues", vhost, queue), &q); err != nil {
		return QueueDetails{}, fmt.Errorf("look at queue %q: %w", queue, err)
	}
	return q, nil
}

// Bound reports whether a binding exists. The API answers from the broker's metadata, so it knows at once.
func (m *Management) Bound(ctx context.Context, vhost string, b topology.Binding) (bool, error) {
	var all []struct {
		Key string `json:"routing_key"`
	}
	if err := m.get(ctx, path("bindings", vhost, "e", b.Exchange, "q", b.Queue), &all); err != nil {
		return false, fmt.Errorf("look for the binding of queue %q to exchange %q: %w", b.Queue, b.Exchange, err)
	}
	for _, one := range all {
		if one.Key == b.Key {
			return true, nil
		}
	}
	return false, nil
}

// Node is one node of the cluster.
type Node struct {
	Name        string   `json:"name"`
	Running     bool     `json:"running"`
	MemoryAlarm bool     `json:"mem_alarm"`
	DiskAlarm   bool     `json:"disk_free_alarm"`
	Plugins     []string `json:"enabled_plugins"`
}

// Nodes returns the cluster's nodes. It needs the tag monitoring.
func (m *Management) Nodes(ctx context.Context) ([]Node, error) {
	var nodes []Node
	if err := m.get(ctx, path("nodes"), &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return nodes, nil
}

// Missing returns how many nodes of the cluster the best and the worst informed of those nodes do not see running that this client
// has addresses of. A node that does not answer sees none.
func (m *Management) Missing(ctx context.Context) (least, most int) {
	running := make([]int, len(m.nodes))
	all := 0
	for i, n := range m.nodes {
		var nodes []Node
		if m.ask(ctx, n.base, http.MethodGet, path("nodes"), nil, &nodes) != nil {
			continue
		}
		all = max(all, len(nodes))
		for _, one := range nodes {
			if one.Running {
				running[i]++
			}
		}
	}
	return all - slices.Max(running), all - slices.Min(running)
}

// FeatureFlag is one feature flag; State is "enabled", "disabled" or "unavailable".
type FeatureFlag struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// FeatureFlags returns the cluster's feature flags. It needs the tag administrator on some versions.
func (m *Management) FeatureFlags(ctx context.Context) ([]FeatureFlag, error) {
	var flags []FeatureFlag
	if err := m.get(ctx, path("feature-flags"), &flags); err != nil {
		return nil, fmt.Errorf("list feature flags: %w", err)
	}
	return flags, nil
}

// Overview is what the API says of the broker.
type Overview struct {
	Product string `json:"product_name"`
	Version string `json:"rabbitmq_version"`
	Cluster string `json:"cluster_name"`
}

// Overview returns the broker's product and version.
func (m *Management) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	if err := m.get(ctx, path("overview"), &o); err != nil {
		return Overview{}, fmt.Errorf("read the overview: %w", err)
	}
	return o, nil
}

// Tags returns the tags of the user that the client logs in as.
func (m *Management) Tags(ctx context.Context) ([]string, error) {
	var who struct {
		Tags tagList `json:"tags"`
	}
	if err := m.get(ctx, path("whoami"), &who); err != nil {
		return nil, fmt.Errorf("ask for the user's tags: %w", err)
	}
	return who.Tags, nil
}

// Rights are the patterns of what a user may configure, write and read in a virtual host.
type Rights struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// Rights returns a user's rights. ErrNotFound means that the user has none. It needs the tag administrator.
func (m *Management) Rights(ctx context.Context, vhost, user string) (Rights, error) {
	var r Rights
	if err := m.get(ctx, path("permissions", vhost, user), &r); err != nil {
		return Rights{}, fmt.Errorf("ask for the rights of user %q in virtual host %q: %w", user, vhost, err)
	}
	return r, nil
}
