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
	"spillway/internal/envelope"
)

// maxWindow is the port's bound on unsettled publishes.
const maxWindow = 65535

// errAborted is why an epoch ended that Abort, or a Close out of time, ended.
var errAborted = errors.New("aborted")

// publisher is one publishing epoch. Its channel is the hot one of its wire: Publish writes the frames and notes the publish
// as pending, the goroutine that reads the wire finds the answers (see settle.go), and the library's part is to open the
// channel, to keep the connection alive and to say when it is over.
type publisher struct {
	conn    *connection
	number  uint16 // of the channel
	frame   int    // the largest frame that was agreed on, in bytes
	window  int
	settled func([]broker.Settlement)
	closes  chan *amqp.Error // at most one comes

	// Of the publishing goroutine.
	scratch []byte
	out     frame.Publish
	headers envelope.Headers

	mu      sync.Mutex
	room    sync.Cond // signalled when there is a place in the window, or the epoch is over
	pending pending   // guarded by mu
	over    bool      // nothing may be added to pending any more; guarded by mu

	answers answers

	closing atomic.Bool
	done    chan struct{}
	err     error // written before done is closed
}

// OpenPublisher implements broker.Driver.
func (d *Driver) OpenPublisher(ctx context.Context, name string, window int, settled func([]broker.Settlement), flow broker.Flow) (broker.Publisher, error) {
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
	go p.awaitEnd()
	return p, nil
}

func newPublisher(c *connection, window int, settled func([]broker.Settlement)) (*publisher, error) {
	channel, err := c.Channel()
	if err != nil {
		return nil, err
	}
	if err := channel.Confirm(false); err != nil {
		return nil, err
	}
	p := &publisher{
		conn:    c,
		frame:   c.Config.FrameSize,
		window:  window,
		settled: settled,
		closes:  channel.NotifyClose(make(chan *amqp.Error, 1)),
		done:    make(chan struct{}),
	}
	p.room.L = &p.mu
	p.out.Headers = func(f *frame.Fields) { p.headers.Write(f) }
	p.number = c.wire.handOver(p)
	c.gather(window)
	return p, nil
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
func (p *publisher) Publish(ctx context.Context, token uint64, m *broker.Message) error {
	p.encode(m)
	if !p.add(ctx, token, m) { // before the write: the answer may be here before that returns
		return p.closedError()
	}
	if err := p.conn.wire.send(ctx, p.scratch); err != nil {
		p.conn.wire.abort() // a tag is spoken for whose message did not go out: the broker's count and ours differ from now on
		if p.withdraw(token) {
			return fmt.Errorf("publish to exchange %q: %w: %w", m.Exchange, broker.ErrClosed, err)
		}
	}
	return nil
}

// encode makes the frames of a message in scratch.
func (p *publisher) encode(m *broker.Message) {
	p.headers = m.Headers
	o := &p.out
	o.Exchange, o.RoutingKey, o.ContentType, o.CorrelationID = m.Exchange, m.RoutingKey, m.ContentType, m.CorrelationID
	o.MessageID, o.Type, o.Timestamp, o.Expiration, o.Body = m.MessageID, m.Type, m.Timestamp, m.Expiration, m.Body
	p.scratch = frame.AppendPublish(p.scratch[:0], p.number, p.frame, o)
}

// add notes a publish. It waits for a place in the window, and reports false when the epoch is over.
func (p *publisher) add(ctx context.Context, token uint64, m *broker.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending.open >= p.window {
		p.awaitRoom(ctx)
	}
	if p.over {
		return false
	}
	p.pending.add(slot{token: token, id: identity{m.Exchange, m.RoutingKey, m.MessageID, m.Headers.Seq}})
	return true
}

// awaitRoom waits for a place in the window; mu is held.
func (p *publisher) awaitRoom(ctx context.Context) {
	defer context.AfterFunc(ctx, p.Abort)()
	for !p.over && p.pending.open >= p.window {
		p.room.Wait()
	}
}

// withdraw takes back the publish that was added last, unless the end of the epoch has settled it already.
func (p *publisher) withdraw(token uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over && p.pending.dropLast(token)
}

func (p *publisher) closedError() error { return fmt.Errorf("publish: %w", broker.ErrClosed) }

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
