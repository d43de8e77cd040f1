package rabbit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/envelope"
)

// maxWindow is the port's bound on unsettled publishes.
const maxWindow = 65535

// errAborted is why an epoch ended that Abort, or a Close out of time, ended.
var errAborted = errors.New("aborted")

// publisher is one publishing epoch. Publish appends to pending, the settling goroutine takes away from it.
//
// How an answer is found: the library resolves a deferred confirmation for each publish, and hands returns to a Go
// channel, both from its one reading goroutine and in the order in which the broker sent them. The wire tells when a
// batch was handled; the settling goroutine then collects what is answered and only after that drains the returns. A
// return precedes its own ack on the connection (RabbitMQ 3.10 to 4.3), so it is in the channel by the time the
// confirmation is seen, and Returned wins without waiting for anything.
type publisher struct {
	conn    *connection
	channel *amqp.Channel
	settled func(broker.Settlement)
	slots   chan struct{} // one for each unsettled publish; its capacity is the window

	returns chan amqp.Return // as large as the window: there is at most one for each unsettled publish
	closes  chan *amqp.Error // at most one comes

	mu      sync.Mutex
	pending []slot // in publish order; guarded by mu
	over    bool   // nothing may be added to pending any more; guarded by mu

	answered []slot                // reused; owned by the settling goroutine
	returned map[identity][]string // reasons of returns whose confirmation was not seen yet; owned by the settling goroutine

	nudge   chan struct{} // a publish that was answered before it was in pending; capacity 1
	closing atomic.Bool
	done    chan struct{}
	err     error // written before done is closed
}

// slot is one unsettled publish.
type slot struct {
	token   uint64
	confirm *amqp.DeferredConfirmation
	id      identity
}

// identity is what a return says about the message it brings back. Copies of one message share it; which of them is
// called returned does not matter then.
type identity struct {
	exchange, key, messageID string
	seq                      int64
}

// OpenPublisher implements broker.Driver.
func (d *Driver) OpenPublisher(ctx context.Context, name string, window int, settled func(broker.Settlement), flow broker.Flow) (broker.Publisher, error) {
	if window < 1 || window > maxWindow {
		return nil, fmt.Errorf("a window of %d: want 1 to %d", window, maxWindow)
	}
	c, err := d.dial(ctx, name)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.abort)
	p, err := newPublisher(c, window, settled)
	if err != nil || !stop() {
		c.abort()
		return nil, channelError("open a channel with confirms", errors.Join(err, context.Cause(ctx)))
	}
	blocks := c.NotifyBlocked(make(chan amqp.Blocking, 1))
	go watchFlow(blocks, flow)
	go p.settle()
	return p, nil
}

func newPublisher(c *connection, window int, settled func(broker.Settlement)) (*publisher, error) {
	channel, err := c.Channel()
	if err != nil {
		return nil, err
	}
	if err := channel.Confirm(false); err != nil {
		return nil, err
	}
	return &publisher{
		conn:     c,
		channel:  channel,
		settled:  settled,
		slots:    make(chan struct{}, window),
		returns:  channel.NotifyReturn(make(chan amqp.Return, window)),
		closes:   channel.NotifyClose(make(chan *amqp.Error, 1)),
		returned: make(map[identity][]string),
		nudge:    make(chan struct{}, 1),
		done:     make(chan struct{}),
	}, nil
}

// watchFlow reports blocked and unblocked until the connection ends, and the end of a blocked connection as unblocked.
func watchFlow(blocks <-chan amqp.Blocking, flow broker.Flow) {
	blocked := false
	for b := range blocks {
		blocked = b.Active
		if flow != nil {
			flow.Blocked(b.Active, b.Reason, time.Now())
		}
	}
	if blocked && flow != nil {
		flow.Blocked(false, "the connection ended", time.Now())
	}
}

// Publish implements broker.Publisher. It also waits while the window is full, which a caller that counts its own
// in-flight messages never meets.
func (p *publisher) Publish(token uint64, m *broker.Message) error {
	select {
	case p.slots <- struct{}{}:
	case <-p.done:
		return p.closedError()
	}
	confirm, err := p.channel.PublishWithDeferredConfirm(m.Exchange, m.RoutingKey, true, false, publishing(m))
	if err != nil {
		p.conn.wire.abort() // part of the message may be on the wire: nothing more can follow it
		return fmt.Errorf("publish to exchange %q: %w: %w", m.Exchange, broker.ErrClosed, err)
	}
	s := slot{token, confirm, identity{m.Exchange, m.RoutingKey, m.MessageID, m.Headers.Seq}}
	if !p.add(s) {
		return p.closedError()
	}
	select {
	case <-confirm.Done(): // answered before the settling goroutine could see it
		notify(p.nudge)
	default:
	}
	return nil
}

func (p *publisher) add(s slot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.pending = append(p.pending, s)
	return true
}

func (p *publisher) closedError() error { return fmt.Errorf("publish: %w", broker.ErrClosed) }

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func publishing(m *broker.Message) amqp.Publishing {
	out := amqp.Publishing{
		Headers:       m.Headers.Table(),
		ContentType:   m.ContentType,
		DeliveryMode:  amqp.Persistent,
		CorrelationId: m.CorrelationID,
		MessageId:     m.MessageID,
		Timestamp:     m.Timestamp,
		Type:          m.Type,
		Body:          m.Body,
	}
	if m.Expiration > 0 {
		out.Expiration = strconv.FormatInt(max(1, m.Expiration.Milliseconds()), 10)
	}
	return out
}

// Done implements broker.Publisher.
func (p *publisher) Done() <-chan struct{} { return p.done }

// Err implements broker.Publisher.
func (p *publisher) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Close implements broker.Publisher.
func (p *publisher) Close(ctx context.Context) error {
	p.closing.Store(true)
	err := p.conn.close(ctx)
	<-p.done
	return err
}

// Abort implements broker.Publisher.
func (p *publisher) Abort() { p.conn.abort() }

func returnIdentity(r *amqp.Return) identity {
	h := envelope.ParseHeaders(r.Headers)
	return identity{r.Exchange, r.RoutingKey, r.MessageId, h.Seq}
}
