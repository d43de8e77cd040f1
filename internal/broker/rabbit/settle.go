package rabbit

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
)

// orderlyEnd bounds the close of a connection whose channel the broker has closed.
const orderlyEnd = time.Second

// settle is the settling goroutine of a publisher.
func (p *publisher) settle() {
	for {
		select {
		case <-p.conn.wire.Reads():
			p.sweep()
		case <-p.nudge:
			p.sweep()
		case cause := <-p.closes:
			p.finish(cause)
			return
		}
	}
}

// sweep settles what is answered. The order of its steps is what makes Returned exact: see publisher.
func (p *publisher) sweep() {
	p.collect()
	if len(p.answered) == 0 {
		return
	}
	p.drainReturns()
	for i := range p.answered {
		p.report(&p.answered[i], "")
	}
	clear(p.answered)
}

// collect moves the answered publishes out of pending. It looks at each one; a window of 1000 costs some microseconds
// for a batch of answers.
func (p *publisher) collect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = p.answered[:0]
	keep := p.pending[:0]
	for _, s := range p.pending {
		select {
		case <-s.confirm.Done():
			p.answered = append(p.answered, s)
		default:
			keep = append(keep, s)
		}
	}
	clear(p.pending[len(keep):])
	p.pending = keep
}

// drainReturns takes the returns that have come so far. It does not wait.
func (p *publisher) drainReturns() {
	for {
		select {
		case r, open := <-p.returns:
			if !open {
				return
			}
			p.noteReturn(&r)
		default:
			return
		}
	}
}

func (p *publisher) noteReturn(r *amqp.Return) {
	id := returnIdentity(r)
	p.returned[id] = append(p.returned[id], fmt.Sprintf("%d %s", r.ReplyCode, r.ReplyText))
}

// takeReturn looks up the return of one publish.
func (p *publisher) takeReturn(id identity) (reason string, ok bool) {
	if len(p.returned) == 0 {
		return "", false
	}
	reasons := p.returned[id]
	switch len(reasons) {
	case 0:
		return "", false
	case 1:
		delete(p.returned, id)
	default:
		p.returned[id] = reasons[1:]
	}
	return reasons[0], true
}

// report gives the slot back and then tells the caller, who may publish again from within.
func (p *publisher) report(s *slot, lost string) {
	out := broker.Settlement{Token: s.token}
	out.Outcome, out.Reason = p.outcome(s, lost)
	out.At = p.conn.wire.lastRead()
	if out.Outcome == broker.Unknown {
		out.At = time.Now()
	}
	<-p.slots
	p.settled(out)
}

// outcome judges one resolved confirmation. A confirmation resolves as refused both by a nack and by the end of the
// channel. The library marks the channel closed before it resolves what is left, so an open channel proves the nack.
func (p *publisher) outcome(s *slot, lost string) (broker.Outcome, string) {
	if reason, ok := p.takeReturn(s.id); ok {
		return broker.Returned, reason
	}
	switch {
	case s.confirm.Acked():
		return broker.Confirmed, ""
	case !p.channel.IsClosed():
		return broker.Nacked, ""
	case lost == "":
		return broker.Unknown, "the channel was closed"
	default:
		return broker.Unknown, lost
	}
}

// finish settles everything that is left when the channel has gone. Each confirmation is resolved by then or about to
// be: the library resolves all of them as it closes the channel, with the answers that it had read.
func (p *publisher) finish(cause *amqp.Error) {
	p.mu.Lock()
	p.over = true
	left := p.pending
	p.pending = nil
	p.mu.Unlock()
	for i := range left {
		<-left[i].confirm.Done()
	}
	p.drainReturns()
	p.err = p.endError(cause)
	lost := "the connection was closed"
	if p.err != nil {
		lost = p.err.Error()
	}
	for i := range left {
		p.report(&left[i], lost)
	}
	close(p.done)
	p.closeAfterChannel()
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
