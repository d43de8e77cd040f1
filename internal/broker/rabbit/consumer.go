package rabbit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/envelope"
)

// maxPrefetch is the largest prefetch that the protocol can carry.
const maxPrefetch = 65535

// ErrBadPrefetch is returned for a prefetch outside 1 to 65535. RabbitMQ reads 0 as "2,000" on a quorum queue.
var ErrBadPrefetch = errors.New("the prefetch is out of range")

// consumer is one consuming epoch.
type consumer struct {
	conn    *connection
	channel *amqp.Channel
	tag     string

	out     chan broker.Delivery // as large as the prefetch, so that handing over never waits for the worker
	cancels chan string          // at most one comes: there is one consumer
	closes  chan *amqp.Error     // at most one comes

	cancelled atomic.Bool // by us
	closing   atomic.Bool
	done      chan struct{}
	err       error // written before done and out are closed
}

// OpenConsumer implements broker.Driver.
func (d *Driver) OpenConsumer(ctx context.Context, name string, o broker.ConsumerOptions) (broker.Consumer, error) {
	if o.Prefetch < 1 || o.Prefetch > maxPrefetch {
		return nil, fmt.Errorf("%w: %d on queue %q, want 1 to %d", ErrBadPrefetch, o.Prefetch, o.Queue, maxPrefetch)
	}
	conn, err := d.dial(ctx, name)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, conn.abort)
	c, in, err := newConsumer(conn, o)
	if err != nil || !stop() {
		conn.abort()
		return nil, channelError(fmt.Sprintf("consume queue %q", o.Queue), errors.Join(err, context.Cause(ctx)))
	}
	go c.run(in)
	return c, nil
}

func newConsumer(conn *connection, o broker.ConsumerOptions) (*consumer, <-chan amqp.Delivery, error) {
	channel, err := conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := channel.Qos(o.Prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	c := &consumer{
		conn:    conn,
		channel: channel,
		tag:     o.Tag,
		out:     make(chan broker.Delivery, o.Prefetch),
		cancels: channel.NotifyCancel(make(chan string, 1)),
		closes:  channel.NotifyClose(make(chan *amqp.Error, 1)),
		done:    make(chan struct{}),
	}
	in, err := channel.Consume(o.Queue, o.Tag, false, false, false, false, nil)
	return c, in, err
}

// run hands deliveries over until no more come, and then waits for the end of the epoch.
func (c *consumer) run(in <-chan amqp.Delivery) {
	for d := range in {
		c.out <- delivery(&d)
	}
	// The library closes the deliveries in three cases: the broker cancelled (it has told cancels before), the channel
	// is gone (it is marked closed before), or our own Cancel was answered.
	select {
	case _, cancelled := <-c.cancels: // a closed cancels means that the channel is gone
		if cancelled {
			c.end(broker.ErrConsumerCancelled)
			<-c.closes //nolint:errcheck // it carries the end of a connection that was given up already; the owner closes it
			return
		}
		c.endWith(<-c.closes)
		return
	default:
	}
	if c.channel.IsClosed() {
		c.endWith(<-c.closes)
		return
	}
	close(c.out)
	c.err = epochError(<-c.closes, c.closing.Load(), c.conn.aborted.Load())
	close(c.done)
	c.closeAfterChannel()
}

func (c *consumer) endWith(cause *amqp.Error) {
	c.end(epochError(cause, c.closing.Load(), c.conn.aborted.Load()))
	c.closeAfterChannel()
}

func (c *consumer) end(err error) {
	c.err = err
	close(c.done)
	close(c.out)
}

// closeAfterChannel closes the connection when the broker closed only the channel.
func (c *consumer) closeAfterChannel() {
	ctx, cancel := context.WithTimeout(context.Background(), orderlyEnd)
	defer cancel()
	_ = c.conn.close(ctx) // the epoch is over already; by force is as good
}

func delivery(d *amqp.Delivery) broker.Delivery {
	return broker.Delivery{
		Tag:           d.DeliveryTag,
		Redelivered:   d.Redelivered,
		DeliveryCount: deliveryCount(d.Headers),
		Exchange:      d.Exchange,
		RoutingKey:    d.RoutingKey,
		MessageID:     d.MessageId,
		CorrelationID: d.CorrelationId,
		Type:          d.Type,
		ContentType:   d.ContentType,
		Timestamp:     d.Timestamp,
		Expiration:    expiration(d.Expiration),
		Headers:       envelope.ParseHeaders(d.Headers),
		Body:          d.Body,
		ReceivedAt:    time.Now(),
	}
}

// deliveryCount reads the count that quorum queues keep. It is absent on the first delivery.
func deliveryCount(headers amqp.Table) int {
	switch n := headers["x-delivery-count"].(type) {
	case int64:
		return int(n)
	case int32:
		return int(n)
	default:
		return 0
	}
}

func expiration(ms string) time.Duration {
	n, err := strconv.ParseUint(ms, 10, 32)
	if err != nil {
		return 0 // absent, or not a TTL that RabbitMQ would have taken
	}
	return time.Duration(n) * time.Millisecond
}

// Deliveries implements broker.Consumer.
func (c *consumer) Deliveries() <-chan broker.Delivery { return c.out }

// Ack implements broker.Consumer. After a cancel by the broker nothing is sent: RabbitMQ 4.3 would take a late ack as a
// sign of life and send more to a consumer that nobody reads.
func (c *consumer) Ack(tag uint64, multiple bool) error {
	if c.over() {
		return fmt.Errorf("ack: %w", broker.ErrClosed)
	}
	return channelError("ack", c.channel.Ack(tag, multiple))
}

// Reject implements broker.Consumer.
func (c *consumer) Reject(tag uint64, requeue bool) error {
	if c.over() {
		return fmt.Errorf("reject: %w", broker.ErrClosed)
	}
	return channelError("reject", c.channel.Reject(tag, requeue))
}

func (c *consumer) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Cancel implements broker.Consumer. A second call does nothing.
func (c *consumer) Cancel() error {
	if c.cancelled.Swap(true) || c.over() {
		return nil
	}
	return channelError("cancel the consumer", c.channel.Cancel(c.tag, false))
}

// Done implements broker.Consumer.
func (c *consumer) Done() <-chan struct{} { return c.done }

// Err implements broker.Consumer.
func (c *consumer) Err() error {
	if !c.over() {
		return nil
	}
	return c.err
}

// Close implements broker.Consumer.
func (c *consumer) Close(ctx context.Context) error {
	c.closing.Store(true)
	err := c.conn.close(ctx)
	<-c.done
	return err
}

// Abort implements broker.Consumer.
func (c *consumer) Abort() { c.conn.abort() }
