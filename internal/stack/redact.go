package stack

import "net/url"

// Redacted returns the addresses with every password replaced, for people and files.
func (a Addresses) Redacted() Addresses {
	a.AMQP, a.Management, a.Postgres = redact(a.AMQP), redact(a.Management), redact(a.Postgres)
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
