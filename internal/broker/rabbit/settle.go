package rabbit

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/frame"
	"spillway/internal/envelope"
)

// orderlyEnd bounds the close of a connection whose channel the broker has closed.
const orderlyEnd = time.Second

// answers is what the reading goroutine of a publisher knows: the answers of the present read that are not reported yet, and
// the returns whose confirms are still to come. A return precedes its own ack on the connection (RabbitMQ 3.10 to 4.3), and
// is matched to its publish by what it says of itself, since it carries no tag.
type answers struct {
	turn sync.Mutex // held by whoever reports: the reading goroutine, and at last the one that ends the epoch
	// batch grows under the publisher's mu until the epoch is over, and is reported and emptied under turn.
	batch    []broker.Settlement
	returned map[identity][]string // reasons; nil until there is one; guarded by the publisher's mu
	content  returnedContent       // of the reading goroutine
}

// returnedContent is a return whose content is still being read.
type returnedContent struct {
	active bool
	route  frame.Route
	names  frame.Names
	left   uint64 // bytes of the body that are to come
	begun  bool   // its header was read
}

// take implements hot.
func (p *publisher) take(f *frame.Frame) (bool, error) {
	switch f.Kind() {
	case frame.Ack:
		return true, p.answer(f, broker.Confirmed)
	case frame.Nack:
		return true, p.answer(f, broker.Nacked)
	case frame.Return:
		route, err := f.Returned(&p.answers.content.names)
		p.answers.content.active, p.answers.content.begun, p.answers.content.route = true, false, route
		return true, err
	default:
		if !p.answers.content.active || f.Type == frame.TypeMethod {
			return false, nil
		}
		return true, p.takeContent(f)
	}
}

// answer notes what an ack or a nack settles.
func (p *publisher) answer(f *frame.Frame, outcome broker.Outcome) error {
	tag, multiple, err := f.Answer()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.pending.answer(tag, multiple, func(s slot) { p.note(s, outcome, "") })
	}
	return nil
}

// note adds a settlement to the batch. Returned wins over any other answer.
func (p *publisher) note(s slot, outcome broker.Outcome, reason string) {
	if why, ok := p.answers.takeReturn(s.id); ok {
		outcome, reason = broker.Returned, why
	}
	p.answers.batch = append(p.answers.batch, broker.Settlement{Token: s.token, Outcome: outcome, Reason: reason})
}

// takeContent reads what follows a return, which ends with the last byte of its body.
func (p *publisher) takeContent(f *frame.Frame) error {
	c := &p.answers.content
	switch f.Type {
	case frame.TypeBody:
		c.left -= min(c.left, uint64(len(f.Payload)))
	case frame.TypeHeader:
		var headers envelope.HeaderReader
		h, err := f.Content(&headers)
		if err != nil {
			return err
		}
		c.begun, c.left = true, h.Size
		p.noteReturn(identity{c.route.Exchange, c.route.RoutingKey, h.MessageID, headers.Headers().Seq}, &c.route)
	}
	c.active = !c.begun || c.left > 0
	return nil
}

func (p *publisher) noteReturn(id identity, r *frame.Route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &p.answers
	if a.returned == nil {
		a.returned = make(map[identity][]string)
	}
	a.returned[id] = append(a.returned[id], fmt.Sprintf("%d %s", r.Code, r.Text))
}

// takeReturn looks up the return of one publish.
func (a *answers) takeReturn(id identity) (reason string, ok bool) {
	if len(a.returned) == 0 {
		return "", false
	}
	reasons := a.returned[id]
	switch len(reasons) {
	case 0:
		return "", false
	case 1:
		delete(a.returned, id)
	default:
		a.returned[id] = reasons[1:]
	}
	return reasons[0], true
}

// read implements hot: it reports what one read of the socket answered.
func (p *publisher) read(at time.Time) {
	p.answers.turn.Lock()
	defer p.answers.turn.Unlock()
	p.report(at)
}

// report wakes whoever waits for a place in the window, and then tells the caller; turn is held.
func (p *publisher) report(at time.Time) {
	batch := p.answers.batch
	if len(batch) == 0 {
		return
	}
	for i := range batch {
		batch[i].At = at
	}
	p.room.Broadcast()
	p.settled(batch)
	clear(batch)
	p.answers.batch = batch[:0]
}

// awaitEnd settles everything that is left when the channel has gone. What was read of it has been taken by then, or finds
// the epoch over.
func (p *publisher) awaitEnd() {
	p.end(<-p.closes)
	p.closeAfterChannel()
}

func (p *publisher) end(cause *amqp.Error) {
	p.answers.turn.Lock()
	defer p.answers.turn.Unlock()
	p.err = p.endError(cause)
	lost := "the connection was closed"
	if p.err != nil {
		lost = p.err.Error()
	}
	p.mu.Lock()
	p.over = true
	p.pending.rest(func(s slot) { p.note(s, broker.Unknown, lost) })
	p.mu.Unlock()
	p.report(time.Now())
	p.room.Broadcast() // also when nothing was pending
	close(p.done)
}

// closeAfterChannel closes the connection when the broker closed only the channel (an exchange that does not exist,
// say): an epoch is both.
func (p *publisher) closeAfterChannel() {
	ctx, cancel := context.WithTimeout(context.Background(), orderlyEnd)
	defer cancel()
	_ = p.conn.close(ctx) // the epoch is over already; by force is as good
}

// endError returns why the epoch ended; nil after an orderly Close.
func (p *publisher) endError(cause *amqp.Error) error {
	return epochError(cause, p.closing.Load(), p.conn.aborted.Load())
}

func epochError(cause *amqp.Error, closing, aborted bool) error {
	switch {
	case aborted:
		return fmt.Errorf("%w: %w", broker.ErrClosed, errAborted)
	case cause == nil && closing:
		return nil
	case cause == nil:
		return broker.ErrClosed
	default:
		return fmt.Errorf("%w: %w", broker.ErrClosed, cause)
	}
}
