// Package redrive moves messages from the parking lot back to the work queue: the chosen ones, at a bounded rate, under the same
// ids, each with a new budget. A message is acked in parking only once the broker has confirmed the copy, so a redrive that dies
// leaves two of some and none of nothing; the inbox sees to it that two have one effect.
//
// What is not chosen is held unsettled until the end and goes back then. The parking lot's delivery limit must be lifted for
// that, as the topology here does.
package redrive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"spillway/internal/broker"
)

// Options is what a redrive needs.
type Options struct {
	Driver broker.Driver
	From   string                                 // the parking lot
	To     string                                 // the work queue; messages go straight to it, and to no other queue bound to their key
	Ready  func(ctx context.Context) (int, error) // how many messages of From are ready
	Filter Filter
	Rate   float64 // messages per second, above 0
	Limit  int64   // most messages to be moved; 0 is all
	DryRun bool    // nothing is moved
	// Chosen hears of every message that the filter chooses; nil is nobody.
	Chosen func(d *broker.Delivery)
	// StopShare ends the redrive when more than this share of what was moved has been parked again; 0 never does.
	StopShare float64
	Progress  func(Summary) // once a second; nil is nobody
}

// Summary is what a redrive saw and did.
type Summary struct {
	Parked int64 // messages that lay in parking at the start
	Seen   int64 // of these, read
	Chosen int64 // of these, by the filter
	Moved  int64 // confirmed in the work queue and gone from parking
	Back   int64 // messages that came to parking meanwhile
}

var (
	// ErrParkedAgain is returned when the redrive was ended since its messages came back.
	ErrParkedAgain = errors.New("the messages are parked again")
	// ErrRefused is returned when the broker does not take a copy. Its original stays parked.
	ErrRefused = errors.New("the broker does not take the message")
	errLost    = errors.New("the connection to the parking lot was lost")
)

const (
	window    = 100 // copies unconfirmed at once
	prefetch  = 10_000
	idleAfter = 200 * time.Millisecond // without a delivery, the queue is asked for what it has
	tellEvery = time.Second
	// fewMoved is how many must have been moved for a share of them to say something.
	fewMoved = 20
	maxTries = 5
)

// Run redrives until everything that lay in parking at the start was seen, or ctx ends. The summary holds what was done, also
// with an error.
func Run(ctx context.Context, o Options) (Summary, error) {
	r := &redriver{o: o, limit: rate.NewLimiter(rate.Limit(o.Rate), 1), answers: make(chan broker.Settlement, window)}
	ready, err := o.Ready(ctx)
	if err != nil {
		return r.sum, fmt.Errorf("redrive: %w", err)
	}
	r.sum.Parked = int64(ready)
	if ready == 0 {
		return r.sum, nil
	}
	r.producer = broker.NewProducer(broker.ProducerConfig{
		Driver: o.Driver, Name: "spillway-redrive", Window: window, Backoff: broker.Reconnect, Flow: deaf{},
		Settled: func(all []broker.Settlement) {
			for _, s := range all {
				r.answers <- s // there are no more than the window has room for
			}
		},
	})
	link, unlink := context.WithCancel(ctx)
	defer unlink()
	var publishing errgroup.Group
	publishing.Go(func() error { return r.producer.Run(link) })
	err = r.run(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, c := range r.readers {
		_ = c.Close(closing) // by force when the bound is over; what is unsettled goes back either way
	}
	_ = r.producer.Close(closing) // nothing is open
	unlink()
	_ = publishing.Wait() // its error is that end
	if err != nil {
		return r.sum, fmt.Errorf("redrive: %w", err)
	}
	return r.sum, nil
}

const closeTimeout = 5 * time.Second

// redriver is one redrive. One goroutine owns it. It reads all the time, whatever the rate at which it moves, since what comes to
// parking meanwhile must be seen at once; the prefetch bounds what it holds for that.
type redriver struct {
	o        Options
	sum      Summary
	received int64 // deliveries, those of what came meanwhile too
	limit    *rate.Limiter
	producer *broker.Producer
	answers  chan broker.Settlement
	readers  []broker.Consumer // the last one reads; those before are full of what was not chosen
	kept     int               // by the last one
	chosen   []chosen          // and not on their way yet
	under    [window]move
	free     []int
}

// chosen is one message that is to be moved.
type chosen struct {
	from broker.Consumer
	*broker.Delivery
}

// move is one message on its way.
type move struct {
	from    broker.Consumer
	tag     uint64
	message broker.Message
	tries   int
}

func (r *redriver) run(ctx context.Context) error {
	for i := range r.under {
		r.free = append(r.free, i)
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	idle, tell, next := time.NewTimer(idleAfter), time.NewTicker(tellEvery), time.NewTimer(time.Hour)
	defer idle.Stop()
	defer tell.Stop()
	defer next.Stop()
	for waiting := false; !r.through(); {
		waiting = r.schedule(next, waiting)
		reader := r.readers[len(r.readers)-1]
		var err error
		select {
		case <-next.C:
			waiting = false
			err = r.move(ctx)
		case batch, open := <-reader.Deliveries():
			if !open {
				return fmt.Errorf("%w: %w", errLost, reader.Err())
			}
			r.takeAll(reader, batch)
			idle.Reset(idleAfter)
		case s := <-r.answers:
			err = r.settle(ctx, s)
		case <-idle.C:
			err = r.more(ctx)
			idle.Reset(idleAfter)
		case <-tell.C:
			err = r.watch(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return errors.Join(err, r.await(ctx))
		}
	}
	if r.o.DryRun {
		return nil
	}
	return r.watch(ctx)
}

// schedule sets the timer of the next move, unless it is set or there is nothing to move.
func (r *redriver) schedule(next *time.Timer, waiting bool) bool {
	if waiting || len(r.chosen) == 0 || len(r.free) == 0 {
		return waiting
	}
	next.Reset(r.limit.Reserve().Delay())
	return true
}

// through reports whether everything was seen that lay there, or as much was chosen as is wanted, and all of it was moved.
func (r *redriver) through() bool {
	seen := r.sum.Seen >= r.sum.Parked || r.limited()
	return seen && len(r.chosen) == 0 && len(r.free) == window
}

func (r *redriver) limited() bool { return r.o.Limit > 0 && r.sum.Chosen >= r.o.Limit }

// read opens a reader.
func (r *redriver) read(ctx context.Context) error {
	c, err := r.o.Driver.OpenConsumer(ctx, "spillway-redrive", broker.ConsumerOptions{Queue: r.o.From, Tag: fmt.Sprintf("redrive-%d", len(r.readers)), Prefetch: prefetch})
	if err != nil {
		return err
	}
	r.readers, r.kept = append(r.readers, c), 0
	return nil
}

// more is asked when nothing has come for a while: it opens another reader when the last one is full of what it keeps, and gives up
// what lay there at the start and has gone meanwhile, expired or taken by others.
func (r *redriver) more(ctx context.Context) error {
	ready, err := r.o.Ready(ctx)
	switch {
	case err != nil:
		return err
	case ready == 0 && len(r.readers[len(r.readers)-1].Deliveries()) == 0:
		r.sum.Parked = r.sum.Seen
		return nil
	case ready > 0 && r.kept == prefetch:
		return r.read(ctx)
	default:
		return nil
	}
}

// takeAll notes deliveries, and chooses among those that lay there at the start.
func (r *redriver) takeAll(from broker.Consumer, all []*broker.Delivery) {
	for _, d := range all {
		r.received++
		if r.sum.Seen >= r.sum.Parked || r.limited() {
			r.kept++
			continue
		}
		r.sum.Seen++
		if !r.o.Filter.Matches(d, time.Now()) {
			r.kept++
			continue
		}
		r.sum.Chosen++
		if r.o.Chosen != nil {
			r.o.Chosen(d)
		}
		if r.o.DryRun {
			r.kept++
			continue
		}
		r.chosen = append(r.chosen, chosen{from, d})
	}
}

// move publishes the next chosen message.
func (r *redriver) move(ctx context.Context) error {
	next := r.chosen[0]
	r.chosen = r.chosen[1:]
	i := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	r.under[i] = move{from: next.from, tag: next.Tag, message: r.copyOf(next.Delivery)}
	return r.publish(ctx, i)
}

// copyOf returns the message with a new budget: no retries so far, and an age that counts from now. What is known of its failure
// stays, as its history; the business deadline of its producer does not, since somebody has decided otherwise.
func (r *redriver) copyOf(d *broker.Delivery) broker.Message {
	m := broker.Message{
		RoutingKey: r.o.To, MessageID: d.MessageID, CorrelationID: d.CorrelationID, Type: d.Type, ContentType: d.ContentType,
		Timestamp: d.Timestamp, Headers: d.Headers, Body: d.Body,
	}
	m.Headers.RedrivenAt = time.Now().UnixMicro()
	m.Headers.Retries, m.Headers.RetriedAt, m.Headers.RetryDelay, m.Headers.Deadline = 0, 0, 0, 0
	return m
}

func (r *redriver) publish(ctx context.Context, i int) error {
	r.under[i].tries++
	return r.producer.Publish(ctx, uint64(i), &r.under[i].message)
}

// settleNext waits for one answer.
func (r *redriver) settleNext(ctx context.Context) error {
	select {
	case s := <-r.answers:
		return r.settle(ctx, s)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var tryAgain = broker.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}

// settle acks the original of a confirmed copy, and tries others again.
func (r *redriver) settle(ctx context.Context, s broker.Settlement) error {
	i := int(s.Token)
	m := &r.under[i]
	if s.Outcome == broker.Confirmed {
		r.free = append(r.free, i)
		if err := m.from.Ack(m.tag, false); err != nil {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		r.sum.Moved++
		return nil
	}
	if m.tries >= maxTries || !broker.Wait(ctx, tryAgain.Delay(m.tries-1, rand.Float64())) {
		return fmt.Errorf("%w: %s %s after %d tries", ErrRefused, s.Outcome, s.Reason, m.tries)
	}
	return r.publish(ctx, i)
}

// await waits for every answer that is still to come.
func (r *redriver) await(ctx context.Context) error {
	for len(r.free) < window {
		if err := r.settleNext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watch tells how far it is, and ends it when the messages come back.
func (r *redriver) watch(ctx context.Context) error {
	ready, err := r.o.Ready(ctx)
	if err != nil {
		return err
	}
	r.sum.Back = max(0, int64(ready)+r.received-r.sum.Parked)
	if r.o.Progress != nil {
		r.o.Progress(r.sum)
	}
	if r.o.StopShare > 0 && r.sum.Moved >= fewMoved && float64(r.sum.Back) > r.o.StopShare*float64(r.sum.Moved) {
		return fmt.Errorf("%w: %d of the %d that were moved; mend what they fail of first", ErrParkedAgain, r.sum.Back, r.sum.Moved)
	}
	return nil
}

// deaf does not listen to the broker's back pressure: a redrive that is blocked waits.
type deaf struct{}

// Blocked implements broker.Flow.
func (deaf) Blocked(bool, string, time.Time) {}
