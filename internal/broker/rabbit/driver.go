// Package rabbit is the RabbitMQ driver behind the broker port: publishing and consuming epochs over AMQP 0-9-1, the
// declaration and audit of a topology (Admin), and the management API (Management).
//
// It owns every socket that it opens: an epoch dials a connection of its own, nothing reconnects by itself, and every
// blocking call ends when its epoch is aborted, because the socket is closed under it. Outcomes and cancels never travel
// through a notification channel that could fill up (the client library drops such notifications after 5 s): each such
// channel is as large as what can be in it.
//
// Callers see the sentinels of package broker; the client library does not leak out.
package rabbit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
)

const (
	defaultDialTimeout = 10 * time.Second // RabbitMQ answers a wrong password after up to 3 s
	defaultHeartbeat   = 10 * time.Second
	// closeBound is how long an orderly close may take when the caller's context allows more.
	closeBound = 10 * time.Second
)

// Config says where the broker is and how to log in.
type Config struct {
	URIs        []string      // at least one; each new connection starts with the next one and tries the others in turn
	Username    string        // replaces the one in the URIs; "" keeps it
	Password    string        // replaces the one in the URIs; "" keeps it
	Vhost       string        // replaces the one in the URIs; "" keeps it
	TLS         TLS           // for amqps URIs; what is unset is taken from a URI's own parameters
	DialTimeout time.Duration // for connection, TLS and login together; 0 is 10 s
	Heartbeat   time.Duration // 0 is 10 s; whole seconds, at least 2
	Gather      time.Duration // how long answers and deliveries may lie in the socket; see GatherDelay. 0 reads at once
	// Dial makes the sockets, for a way that leads through something; nil is the usual one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Driver opens connections to one broker. It implements broker.Driver and is safe for concurrent use.
type Driver struct {
	config    Config
	endpoints []endpoint
	tls       []*tls.Config // one for each endpoint; nil for plain ones
	next      *atomic.Uint64
}

var _ broker.Driver = (*Driver)(nil)

// New checks the configuration and reads the TLS files. It dials nothing. Its errors wrap ErrBadURI or ErrBadTLS.
func New(c Config) (*Driver, error) {
	if len(c.URIs) == 0 {
		return nil, fmt.Errorf("no broker address given: %w", ErrBadURI)
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = defaultDialTimeout
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	d := &Driver{config: c, next: new(atomic.Uint64)}
	var problems []error
	for i, uri := range c.URIs {
		if err := d.addEndpoint(uri); err != nil {
			problems = append(problems, fmt.Errorf("broker address %d: %w", i+1, err))
		}
	}
	return d, errors.Join(problems...)
}

func (d *Driver) addEndpoint(uri string) error {
	e, err := parseEndpoint(uri)
	if err != nil {
		return err
	}
	override(&e.username, d.config.Username)
	override(&e.password, d.config.Password)
	override(&e.vhost, d.config.Vhost)
	var secure *tls.Config
	if e.secure {
		if secure, err = d.config.TLS.orFromURI(e).config(); err != nil {
			return err
		}
		if secure.ServerName == "" {
			secure.ServerName = e.host
		}
	}
	d.endpoints = append(d.endpoints, e)
	d.tls = append(d.tls, secure)
	return nil
}

func override(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// WithVhost returns a driver for another virtual host of the same broker.
func (d *Driver) WithVhost(vhost string) *Driver {
	other := *d
	other.config.Vhost = vhost
	other.endpoints = slices.Clone(d.endpoints)
	for i := range other.endpoints {
		other.endpoints[i].vhost = vhost
	}
	return &other
}

// WithHeartbeat returns a driver whose connections have another heartbeat; see Config.
func (d *Driver) WithHeartbeat(every time.Duration) *Driver {
	other := *d
	other.config.Heartbeat = every
	return &other
}

// Hosts returns the host names of all addresses, for the check that a run may touch them.
func (d *Driver) Hosts() []string {
	hosts := make([]string, len(d.endpoints))
	for i, e := range d.endpoints {
		hosts[i] = e.host
	}
	return hosts
}

// Vhost returns the virtual host of the first address.
func (d *Driver) Vhost() string { return d.endpoints[0].vhost }

// Username returns the user of the first address.
func (d *Driver) Username() string { return d.endpoints[0].username }

// String returns the first address without its password.
func (d *Driver) String() string { return d.endpoints[0].String() }
