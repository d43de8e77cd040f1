package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/frame"
)

// maxPrefetch is the largest prefetch that the protocol can carry.
const maxPrefetch = 65535

// ErrBadPrefetch is returned for a prefetch outside 1 to 65535. RabbitMQ reads 0 as "2,000" on a quorum queue.
var ErrBadPrefetch = errors.New("the prefetch is out of range")

var errTooMany = errors.New("the broker delivers more than the prefetch")

// consumer is one consuming epoch. Its channel is the hot one of its wire: deliveries are read and acks are written here;
// the library opens the channel, starts and cancels the consumer, and says when it is over.
type consumer struct {
	conn    *connection
	channel *amqp.Channel
	number  uint16 // of the channel
	tag     string

	incoming incoming // of the reading goroutine
	// out has room for as many batches as there can be deliveries without a settlement, so handing over never waits.
	mu      sync.Mutex
	out     chan []*broker.Delivery // closed under mu
	full    bool                    // out is closed; guarded by mu
	scratch []byte                  // of the owner, for acks

	cancels chan string      // at most one comes: there is one consumer
	closes  chan *amqp.Error // at most one comes

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
		out:     make(chan []*broker.Delivery, room(&o)),
		cancels: channel.NotifyCancel(make(chan string, 1)),
		closes:  channel.NotifyClose(make(chan *amqp.Error, 1)),
		done:    make(chan struct{}),
	}
	c.number = conn.wire.handOver(c)
	in, err := channel.Consume(o.Queue, o.Tag, o.AutoAck, false, false, false, nil)
	conn.gather(o.Prefetch)
	return c, in, err
}

// autoAckRoom is how many batches of deliveries may lie in this process when the broker does not wait for acks: what a queue
// holds comes as fast as the socket takes it.
const autoAckRoom = 1 << 16

func room(o *broker.ConsumerOptions) int {
	if o.AutoAck {
		return autoAckRoom
	}
	return o.Prefetch
}

// take implements hot.
func (c *consumer) take(f *frame.Frame) (bool, error) { return c.incoming.take(f) }

// read implements hot: it hands over what one read of the socket gave.
func (c *consumer) read(at time.Time) {
	batch := c.incoming.batch(at)
	if batch == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		return
	}
	select {
	case c.out <- batch:
	default: // more than the prefetch: whatever this is, it keeps no promise
		c.conn.wire.fail(errTooMany)
	}
}

// noMore closes out. What the broker sent before its cancel-ok was read before it.
func (c *consumer) noMore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = true
	close(c.out)
}

// run waits until no more deliveries come, and then for the end of the epoch. The library's deliveries are none: it is told
// of no delivery, but knows when they are over.
func (c *consumer) run(in <-chan amqp.Delivery) {
	for range in {
		continue
	}
	// The library closes its deliveries in three cases: the broker cancelled (it has told cancels before), the channel
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
	c.noMore()
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
	c.noMore()
}

// closeAfterChannel closes the connection when the broker closed only the channel.
func (c *consumer) closeAfterChannel() {
	ctx, cancel := context.WithTimeout(context.Background(), orderlyEnd)
	defer cancel()
	_ = c.conn.close(ctx) // the epoch is over already; by force is as good
}

// Deliveries implements broker.Consumer.
func (c *consumer) Deliveries() <-chan []*broker.Delivery { return c.out }

// Ack implements broker.Consumer. After a cancel by the broker nothing is sent: RabbitMQ 4.3 would take a late ack as a
// sign of life and send more to a consumer that nobody reads.
func (c *consumer) Ack(tag uint64, multiple bool) error {
	if c.over() {
		return fmt.Errorf("ack: %w", broker.ErrClosed)
	}
	c.scratch = frame.AppendAck(c.scratch[:0], c.number, tag, multiple)
	return c.send("ack")
}

// Reject implements broker.Consumer.
func (c *consumer) Reject(tag uint64, requeue bool) error {
	if c.over() {
		return fmt.Errorf("reject: %w", broker.ErrClosed)
	}
	c.scratch = frame.AppendReject(c.scratch[:0], c.number, tag, requeue)
	return c.send("reject")
}

// Nack implements broker.Consumer.
func (c *consumer) Nack(tag uint64) error {
	if c.over() {
		return fmt.Errorf("nack: %w", broker.ErrClosed)
	}
	c.scratch = frame.AppendNack(c.scratch[:0], c.number, tag)
	return c.send("nack")
}

// send writes what is in scratch. It waits while the broker does not read; Abort releases it.
func (c *consumer) send(what string) error {
	if err := c.conn.wire.send(context.Background(), c.scratch); err != nil {
		return fmt.Errorf("%s: %w: %w", what, broker.ErrClosed, err)
	}
	return nil
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
