package stack

import (
	"net/url"
	"slices"
)

// Redacted returns the addresses with every password replaced, for people and files.
func (a Addresses) Redacted() Addresses {
	a.AMQP, a.Management, a.Postgres = redact(a.AMQP), redact(a.Management), redact(a.Postgres)
	a.Nodes = slices.Clone(a.Nodes)
	for i := range a.Nodes {
		a.Nodes[i].AMQP, a.Nodes[i].Management = redact(a.Nodes[i].AMQP), redact(a.Nodes[i].Management)
	}
	return a
}

// redact replaces the password of a URI; what cannot be parsed is hidden altogether.
func redact(uri string) string {
	if uri == "" {
		return ""
	}
	u, err := url.Parse(uri)
	if err != nil {
		return "(hidden)"
	}
	return u.Redacted()
}
