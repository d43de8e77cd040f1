package rabbit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"spillway/internal/topology"
)

// CreateVhost makes a virtual host and gives the user every right in it.
func (m *Management) CreateVhost(ctx context.Context, vhost, user string) error {
	body := map[string]any{"description": "a run of spillway; safe to delete when no run is going on"}
	if err := m.put(ctx, path("vhosts", vhost), body); err != nil {
		return fmt.Errorf("create virtual host %q: %w", vhost, err)
	}
	rights := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	if err := m.put(ctx, path("permissions", vhost, user), rights); err != nil {
		return fmt.Errorf("give user %q rights in virtual host %q: %w", user, vhost, err)
	}
	return nil
}

// DeleteVhost removes a virtual host with all that is in it, and closes its connections. One that does not exist is no
// error.
func (m *Management) DeleteVhost(ctx context.Context, vhost string) error {
	if err := m.delete(ctx, path("vhosts", vhost)); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete virtual host %q: %w", vhost, err)
	}
	return nil
}

// ListVhosts returns the virtual hosts whose names start with prefix, sorted: the leftovers of earlier runs.
func (m *Management) ListVhosts(ctx context.Context, prefix string) ([]string, error) {
	var all []struct {
		Name string `json:"name"`
	}
	if err := m.get(ctx, path("vhosts"), &all); err != nil {
		return nil, fmt.Errorf("list virtual hosts: %w", err)
	}
	var names []string
	for _, v := range all {
		if strings.HasPrefix(v.Name, prefix) {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// PutPolicy sets one policy.
func (m *Management) PutPolicy(ctx context.Context, vhost string, p topology.Policy) error {
	body := map[string]any{
		"pattern":    p.Pattern,
		"apply-to":   p.ApplyTo,
		"priority":   p.Priority,
		"definition": p.Definition,
	}
	if err := m.put(ctx, path("policies", vhost, p.Name), body); err != nil {
		return fmt.Errorf("set policy %q: %w", p.Name, err)
	}
	return nil
}

// DeletePolicy removes one policy. One that does not exist is no error.
func (m *Management) DeletePolicy(ctx context.Context, vhost, name string) error {
	if err := m.delete(ctx, path("policies", vhost, name)); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete policy %q: %w", name, err)
	}
	return nil
}

// Connections returns how many connections to a virtual host the API knows of. A connection becomes known with its first
// statistics, up to 5 s after it was opened.
func (m *Management) Connections(ctx context.Context, vhost string) (int, error) {
	names, err := m.connectionNames(ctx, vhost, nil)
	return len(names), err
}

// connectionNames returns the API's names of the connections whose own names begin with one of the given texts; of all when
// there are none.
func (m *Management) connectionNames(ctx context.Context, vhost string, beginnings []string) ([]string, error) {
	var all []struct {
		Name string `json:"name"`
		Own  string `json:"user_provided_name"`
	}
	if err := m.get(ctx, path("vhosts", vhost, "connections"), &all); err != nil {
		return nil, fmt.Errorf("list the connections of virtual host %q: %w", vhost, err)
	}
	var names []string
	for _, c := range all {
		if len(beginnings) == 0 || slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(c.Own, b) }) {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

// CloseConnections closes the connections that Connections counts, those whose own names begin with one of the given texts or,
// without any, all of them, and returns how many it closed.
func (m *Management) CloseConnections(ctx context.Context, vhost string, beginnings ...string) (int, error) {
	names, err := m.connectionNames(ctx, vhost, beginnings)
	if err != nil {
		return 0, err
	}
	closed := 0
	for _, name := range names {
		err := m.delete(ctx, path("connections", name))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return closed, fmt.Errorf("close connection %q: %w", name, err)
		}
		if err == nil {
			closed++
		}
	}
	return closed, nil
}
