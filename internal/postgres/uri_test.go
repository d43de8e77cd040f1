package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"spillway/internal/postgres"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ uri, want string }{
		"a URI keeps all but its password":           {"postgres://u:hush@h:1/d?sslmode=disable", "postgres://u:xxxxx@h:1/d?sslmode=disable"},
		"a URI without a password stays as it is":    {"postgres://u@h:1/d", "postgres://u@h:1/d"},
		"passwords among the parameters are masked":  {"postgres://h/d?password=hush&user=u", "postgres://h/d?password=xxxxx&user=u"},
		"the key's password is masked":               {"postgresql://h/d?sslpassword=hush", "postgresql://h/d?sslpassword=xxxxx"},
		"keywords are reduced to what names a place": {"host=h port=1 user=u password=hush dbname=d", "host=h port=1 user=u dbname=d"},
		"a URI of several hosts keeps them all":      {"postgres://u:hush@h:1,i:2/d", "postgres://u:xxxxx@h:1,i:2/d"},
		"what cannot be read is not shown":           {"postgres://u:hu/sh@h/d", "(an unreadable PostgreSQL address)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := postgres.Redact(c.uri)
			if got != c.want {
				t.Errorf("Redact(%q) = %q, want %q", c.uri, got, c.want)
			}
			if strings.Contains(got, "hush") {
				t.Errorf("Redact(%q) = %q shows the password", c.uri, got)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uri  string
		want []string
	}{
		"a URI names one host":                        {"postgres://u@db.example:1/d?sslmode=disable", []string{"db.example"}},
		"a host with and without TLS is named once":   {"postgres://u@db.example:1/d?sslmode=prefer", []string{"db.example"}},
		"each of several hosts is named":              {"postgres://u@a:1,b:2/d", []string{"a", "b"}},
		"a host among the parameters is named":        {"postgres:///d?host=db.example", []string{"db.example"}},
		"keywords name a host":                        {"host=::1 dbname=d", []string{"::1"}},
		"a Unix socket is on this machine, left out":  {"host=/run/postgresql dbname=d", nil},
		"a socket beside a host leaves only the host": {"postgres:///d?host=/run/postgresql,db.example", []string{"db.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := postgres.Hosts(c.uri)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("Hosts(%q) = %q, %v; want %q", c.uri, got, err, c.want)
			}
		})
	}
}

func TestABadAddressIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for name, uri := range map[string]string{
		"a slash in the password":  "postgres://u:hu/sh@h/d",
		"a port that is no number": "postgres://u:hush@h:port/d",
		"an unknown sslmode":       "postgres://u:hush@h/d?sslmode=maybe",
		"a CA that is not there":   "postgres://u:hush@h/d?sslmode=verify-full&sslrootcert=/no/such/ca.pem",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Hosts(uri)
			_, opened := postgres.Open(t.Context(), postgres.Config{URI: uri})
			for _, err := range []error{err, opened} {
				if !errors.Is(err, postgres.ErrBadURI) {
					t.Fatalf("error is %v, want ErrBadURI", err)
				}
				if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "hu/sh") {
					t.Errorf("%v shows the password", err)
				}
			}
		})
	}
}
