package rabbit

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrBadURI is returned for text that is not an AMQP URI. The text itself is never part of the error: it may hold a
// password in a place where no parser can find it.
var ErrBadURI = errors.New("not an AMQP URI: want amqp://user:password@host:port/vhost or amqps://..., reserved characters percent-encoded")

// endpoint is one broker address with credentials.
type endpoint struct {
	address  string // host:port
	host     string
	secure   bool
	username string
	password string
	vhost    string
	uri      amqp.URI
}

// parseEndpoint reads an AMQP URI by the rules of the RabbitMQ URI specification, query parameters included.
func parseEndpoint(text string) (endpoint, error) {
	u, err := amqp.ParseURI(text)
	if err != nil {
		return endpoint{}, ErrBadURI // not wrapped: the parser quotes its input
	}
	return endpoint{
		address:  net.JoinHostPort(u.Host, strconv.Itoa(u.Port)),
		host:     u.Host,
		secure:   u.Scheme == "amqps",
		username: u.Username,
		password: u.Password,
		vhost:    u.Vhost,
		uri:      u,
	}, nil
}

// String returns the address with user and virtual host, without the password.
func (e endpoint) String() string {
	scheme := "amqp"
	if e.secure {
		scheme = "amqps"
	}
	return fmt.Sprintf("%s://%s@%s/%s", scheme, url.User(e.username), e.address, url.PathEscape(e.vhost))
}

// Redact returns a URI of any scheme with its password masked. What cannot be parsed comes back as a fixed text.
func Redact(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return "(a URI that cannot be parsed)"
	}
	q := u.Query()
	for _, secret := range []string{"password", "sslpassword"} {
		if q.Has(secret) {
			q.Set(secret, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}

// IsLoopback reports whether a host is this machine by name or address. Names other than localhost count as foreign:
// what they resolve to may change.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
