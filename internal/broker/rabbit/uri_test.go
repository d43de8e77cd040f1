package rabbit

import (
	"errors"
	"strings"
	"testing"
)

func TestRedactShowsNoPassword(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"amqp://user:secret@host:5672/v":            "amqp://user:xxxxx@host:5672/v",
		"amqps://user:se%3Fcret@host/":              "amqps://user:xxxxx@host/",
		"http://admin:secret@host:15672":            "http://admin:xxxxx@host:15672",
		"amqp://host":                               "amqp://host",
		"amqp://user:secret#x@host":                 "(a URI that cannot be parsed)",
		"host=db password=secret":                   "(a URI that cannot be parsed)",
		"postgres://u@h/db?password=secret&x=1":     "postgres://u@h/db?password=xxxxx&x=1",
		"amqp://user:secret@host:port/ with spaces": "(a URI that cannot be parsed)",
	} {
		got := Redact(uri)
		if got != want || strings.Contains(got, "secret") {
			t.Errorf("Redact(%q) = %q, want %q", uri, got, want)
		}
	}
}

func TestABadAddressIsRefusedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	_, err := New(Config{URIs: []string{"amqp://user:secret#x@host", "amqp://ok", "http://user:secret@host"}})
	if !errors.Is(err, ErrBadURI) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); strings.Contains(text, "secret") || !strings.Contains(text, "address 1") || !strings.Contains(text, "address 3") {
		t.Errorf("the message is %q", text)
	}
	if _, err := New(Config{}); !errors.Is(err, ErrBadURI) {
		t.Errorf("no address: %v", err)
	}
}

func TestHostsAndOverrides(t *testing.T) {
	t.Parallel()
	d, err := New(Config{
		URIs: []string{"amqp://a:b@one:1/v", "amqp://[::1]:2"}, Username: "u", Password: "secret", Vhost: "w/x",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(d.Hosts(), " "); got != "one ::1" {
		t.Errorf("hosts are %q", got)
	}
	if got := d.String(); got != "amqp://u@one:1/w%2Fx" {
		t.Errorf("the driver is %q", got)
	}
	if got := d.WithVhost("other").String(); got != "amqp://u@one:1/other" || d.Vhost() != "w/x" {
		t.Errorf("the other driver is %q, the first one's virtual host %q", got, d.Vhost())
	}
}

func TestLoopbackHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "10.0.0.1": false, "rabbit.example": false, "localhost.evil.example": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v", host, got)
		}
	}
}
