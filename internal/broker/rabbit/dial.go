package rabbit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
)

// connection is one AMQP connection with the wire under it.
type connection struct {
	*amqp.Connection
	wire    *wire
	gather  func(window int) // reads in larger portions from now on, if the driver is to
	at      endpoint
	aborted atomic.Bool // by us, rather than by an accident
}

// dial opens a connection to the first address that takes it. Successive calls start with successive addresses, which
// spreads the connections over a cluster.
func (d *Driver) dial(ctx context.Context, name string) (*connection, error) {
	start := int(d.next.Add(1) - 1)
	var problem error
	for i := range d.endpoints {
		k := (start + i) % len(d.endpoints)
		c, err := d.dialOne(ctx, k, name)
		if err == nil {
			return c, nil
		}
		if problem == nil {
			problem = err
		} else {
			problem = fmt.Errorf("%w; %w", problem, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, problem
}

func (d *Driver) dialOne(ctx context.Context, k int, name string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.DialTimeout)
	defer cancel()
	e := d.endpoints[k]
	plain, err := d.config.Dial(ctx, "tcp", e.address)
	if err != nil {
		return nil, unreachable(e, err)
	}
	socket := newGatheringConn(plain)
	var conn net.Conn = socket
	if secure := d.tls[k]; secure != nil {
		client := tls.Client(socket, secure.Clone())
		if err := client.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, unreachable(e, fmt.Errorf("TLS: %w", err))
		}
		conn = client
	}
	c, err := d.login(ctx, e, newWire(socket, conn), name)
	if err != nil {
		return nil, err
	}
	c.gather = func(window int) { socket.gather(d.config.Gather, window) }
	return c, nil
}

// login speaks AMQP on a fresh wire. The context bounds it by closing the socket.
func (d *Driver) login(ctx context.Context, e endpoint, w *wire, name string) (*connection, error) {
	stop := context.AfterFunc(ctx, w.abort)
	c, err := amqp.Open(w, amqp.Config{
		SASL:       []amqp.Authentication{&amqp.PlainAuth{Username: e.username, Password: e.password}},
		Vhost:      e.vhost,
		Heartbeat:  d.config.Heartbeat,
		FrameSize:  128 << 10, // RabbitMQ's default frame_max
		Locale:     "en_US",
		Properties: amqp.Table{"product": "spillway", "platform": "Go", "connection_name": name},
	})
	aborted := !stop()
	if err != nil || aborted {
		lost := w.failure()
		w.abort()
		if aborted {
			return nil, unreachable(e, fmt.Errorf("no login: %w", context.Cause(ctx)))
		}
		return nil, loginError(e, err, lost)
	}
	w.setIdle(c.Config.Heartbeat * 3 / 2) // three of the broker's heartbeats, which it sends twice an interval
	return &connection{Connection: c, wire: w, at: e}, nil
}

// unreachable makes the one sentence for a broker that did not answer.
func unreachable(e endpoint, err error) error {
	return fmt.Errorf("%w at %s (%w): check the address, that RabbitMQ runs there, and the firewall between", broker.ErrUnreachable, e, err)
}

// loginError tells a refusal from a broken connection. RabbitMQ (3.10 to 4.3) refuses a virtual host with code 530. A
// wrong password it refuses by ending the stream, after 3 s, since the library does not announce that it understands a
// refusal; the library then reports ErrCredentials for whatever ended the stream, so the wire's own error decides. A
// broker that dies in that very moment looks the same.
func loginError(e endpoint, err, lost error) error {
	var reply *amqp.Error
	switch {
	case errors.As(err, &reply) && reply.Server && (reply.Code == amqp.AccessRefused || reply.Code == amqp.NotAllowed):
		return fmt.Errorf("%w at %s (%s): check user, password and virtual host, and the user's right to it", broker.ErrLoginRefused, e, reply.Reason)
	case errors.Is(err, amqp.ErrCredentials) && (errors.Is(lost, io.EOF) || errors.Is(lost, syscall.ECONNRESET)):
		return fmt.Errorf("%w at %s: check user and password; the user guest may log in from the broker's own machine only", broker.ErrLoginRefused, e)
	default:
		return unreachable(e, err)
	}
}

// abort closes the socket at once. It does not block.
func (c *connection) abort() {
	c.aborted.Store(true)
	c.wire.abort()
}

// close ends the connection in an orderly way, or by force when the context or closeBound is over. It does not return
// before the library has let go of the connection.
func (c *connection) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeBound)
	defer cancel()
	stop := context.AfterFunc(ctx, c.abort)
	err := c.Connection.Close()
	if !stop() {
		return fmt.Errorf("close the connection to %s: %w", c.at, context.Cause(ctx))
	}
	if err != nil && !errors.Is(err, amqp.ErrClosed) {
		c.abort()
		return fmt.Errorf("close the connection to %s: %w", c.at, err)
	}
	return nil
}

// channelError translates an error of a channel operation into the port's words.
func channelError(what string, err error) error {
	var reply *amqp.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && reply.Code == amqp.AccessRefused:
		return fmt.Errorf("%s: %w: %s", what, broker.ErrRightMissing, reply.Reason)
	case errors.As(err, &reply) && reply.Code == amqp.NotFound:
		return fmt.Errorf("%s: %w: %s", what, ErrNotFound, reply.Reason)
	case errors.Is(err, amqp.ErrClosed):
		return fmt.Errorf("%s: %w", what, broker.ErrClosed)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// ErrNotFound is returned for a queue, exchange, policy or virtual host that does not exist.
var ErrNotFound = errors.New("not found at the broker")
