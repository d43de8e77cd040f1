package rabbit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kinds of what Named lists and DeleteNamed deletes, as the API's paths have them.
const (
	KindQueues    = "queues"
	KindExchanges = "exchanges"
	KindPolicies  = "policies"
)

// Named returns the names of one kind in a virtual host that start with prefix, sorted: what runs by prefix have left.
func (m *Management) Named(ctx context.Context, kind, vhost, prefix string) ([]string, error) {
	var all []struct {
		Name string `json:"name"`
	}
	if err := m.get(ctx, path(kind, vhost), &all); err != nil {
		return nil, fmt.Errorf("list %s of virtual host %q: %w", kind, vhost, err)
	}
	var names []string
	for _, one := range all {
		if strings.HasPrefix(one.Name, prefix) {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// DeleteNamed removes one thing of a kind, with all that is in it. One that does not exist is no error.
func (m *Management) DeleteNamed(ctx context.Context, kind, vhost, name string) error {
	if err := m.delete(ctx, path(kind, vhost, name)); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete %q of the %s in virtual host %q: %w", name, kind, vhost, err)
	}
	return nil
}
