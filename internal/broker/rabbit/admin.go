package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/topology"
)

// Admin declares, inspects and deletes a topology over AMQP. It keeps one connection, opened when first needed and again
// after an error. It is safe for concurrent use; calls run one after another.
type Admin struct {
	driver *Driver

	mu      sync.Mutex
	conn    *connection   // nil when there is none; guarded by mu
	channel *amqp.Channel // guarded by mu
}

// NewAdmin makes an admin on the driver's virtual host. It dials nothing.
func NewAdmin(d *Driver) *Admin { return &Admin{driver: d} }

// Close ends the connection. The admin can be used again.
func (a *Admin) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		_ = a.conn.close(context.Background()) // bounded; nothing is in flight
	}
	a.conn, a.channel = nil, nil
}

// do runs one operation on the channel, bounded by ctx. A failed operation costs the channel, so the connection too: the
// next call starts afresh.
func (a *Admin) do(ctx context.Context, what string, operation func(*amqp.Channel) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.open(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	stop := context.AfterFunc(ctx, a.conn.abort)
	err := operation(a.channel)
	aborted := !stop()
	if err == nil && !aborted {
		return nil
	}
	_ = a.conn.close(context.Background()) // bounded; the error that matters is the operation's
	a.conn, a.channel = nil, nil
	if aborted {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return channelError(what, err)
}

func (a *Admin) open(ctx context.Context) error {
	if a.conn != nil && !a.conn.IsClosed() && !a.channel.IsClosed() {
		return nil
	}
	if a.conn != nil {
		a.conn.abort()
		a.conn = nil
	}
	conn, err := a.driver.dial(ctx, "spillway admin")
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, conn.abort)
	channel, err := conn.Channel()
	if err != nil || !stop() {
		conn.abort()
		return fmt.Errorf("%w: %s closed the connection", broker.ErrUnreachable, conn.at)
	}
	a.conn, a.channel = conn, channel
	return nil
}

// Declare makes the plan's exchanges, queues and bindings. Policies are the management API's part. Declaring what exists
// with the same arguments changes nothing; with other arguments it fails.
func (a *Admin) Declare(ctx context.Context, p *topology.Plan) error {
	for _, e := range p.Exchanges {
		err := a.do(ctx, fmt.Sprintf("declare exchange %q", e.Name), func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(e.Name, e.Kind, true, false, false, false, nil)
		})
		if err != nil {
			return err
		}
	}
	for _, q := range p.Queues {
		err := a.do(ctx, fmt.Sprintf("declare queue %q", q.Name), func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(q.Name, true, false, false, false, q.Arguments)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, b := range p.Bindings {
		if err := a.Bind(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// Bind makes one binding. One that exists is no error.
func (a *Admin) Bind(ctx context.Context, b topology.Binding) error {
	return a.do(ctx, fmt.Sprintf("bind queue %q to exchange %q", b.Queue, b.Exchange), func(ch *amqp.Channel) error {
		return ch.QueueBind(b.Queue, b.Key, b.Exchange, false, nil)
	})
}

// Unbind removes one binding. One that does not exist is no error.
func (a *Admin) Unbind(ctx context.Context, b topology.Binding) error {
	return a.do(ctx, fmt.Sprintf("unbind queue %q from exchange %q", b.Queue, b.Exchange), func(ch *amqp.Channel) error {
		return ch.QueueUnbind(b.Queue, b.Key, b.Exchange, nil)
	})
}

// VerifyPassive checks that every exchange and queue of the plan exists. Bindings cannot be seen over AMQP. The first
// missing one is returned, wrapping ErrNotFound.
func (a *Admin) VerifyPassive(ctx context.Context, p *topology.Plan) error {
	for _, e := range p.Exchanges {
		err := a.do(ctx, fmt.Sprintf("look for exchange %q", e.Name), func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(e.Name, e.Kind, true, false, false, false, nil)
		})
		if err != nil {
			return err
		}
	}
	for _, q := range p.Queues {
		if _, err := a.Depth(ctx, q.Name); err != nil {
			return err
		}
	}
	return nil
}

// Missing returns the part of the plan's exchanges and queues that does not exist.
func (a *Admin) Missing(ctx context.Context, p *topology.Plan) (topology.Plan, error) {
	var missing topology.Plan
	for _, e := range p.Exchanges {
		err := a.VerifyPassive(ctx, &topology.Plan{Exchanges: []topology.Exchange{e}})
		if errors.Is(err, ErrNotFound) {
			missing.Exchanges = append(missing.Exchanges, e)
		} else if err != nil {
			return topology.Plan{}, err
		}
	}
	for _, q := range p.Queues {
		_, err := a.Depth(ctx, q.Name)
		if errors.Is(err, ErrNotFound) {
			missing.Queues = append(missing.Queues, q)
		} else if err != nil {
			return topology.Plan{}, err
		}
	}
	return missing, nil
}

// Delete removes the plan's queues and exchanges. What does not exist is no error.
func (a *Admin) Delete(ctx context.Context, p *topology.Plan) error {
	for _, q := range p.Queues {
		err := a.do(ctx, fmt.Sprintf("delete queue %q", q.Name), func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(q.Name, false, false, false)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, e := range p.Exchanges {
		err := a.do(ctx, fmt.Sprintf("delete exchange %q", e.Name), func(ch *amqp.Channel) error {
			return ch.ExchangeDelete(e.Name, false, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Depth is what a passive declare tells of a queue: exact, at once.
type Depth struct {
	Ready     int
	Consumers int
}

// Depth returns the ready messages and consumers of a queue. Unacked messages are not in it.
func (a *Admin) Depth(ctx context.Context, queue string) (Depth, error) {
	var depth Depth
	err := a.do(ctx, fmt.Sprintf("look at queue %q", queue), func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		depth = Depth{q.Messages, q.Consumers}
		return err
	})
	return depth, err
}
