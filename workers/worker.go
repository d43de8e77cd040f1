package workers

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/event"
)

// worker opens one session after the other, each on a channel of its own.
type worker struct {
	service *Service
	name    string
}

// run consumes until Stop, reconnecting with backoff when the channel ends.
func (w *worker) run(ctx context.Context) error {
	s := w.service
	tries := 0
	for opened := false; ctx.Err() == nil && !w.isStopping(); {
		consumer, err := s.cfg.Driver.OpenConsumer(ctx, w.name, broker.ConsumerOptions{
			Queue: s.cfg.Queue, Tag: w.name, Prefetch: s.cfg.Prefetch, AutoAck: s.cfg.Ack == AckAuto,
		})
		if err != nil {
			w.wait(ctx, broker.Reconnect.Delay(tries, rand.Float64()))
			tries++
			continue
		}
		tries = 0
		if opened {
			s.cfg.Links.Reconnected("worker", s.cfg.Base.Now())
		}
		opened = true
		newSession(s, consumer).run(ctx)
	}
	return nil
}

func (w *worker) isStopping() bool {
	select {
	case <-w.service.stopping:
		return true
	default:
		return false
	}
}

// wait sleeps, but no longer than until a stop.
func (w *worker) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.service.stopping:
	case <-ctx.Done():
	}
}

// session is one epoch of a worker. run's goroutine owns the channel and every field; handlers get deliveries over jobs
// and answer over done. Both have room for as many deliveries as the prefetch, and no more are out at once, so neither side
// ever waits to hand over: a delivery lies in jobs until a handler is free for it.
type session struct {
	service  *Service
	consumer broker.Consumer
	acks     acks
	jobs     chan *broker.Delivery
	done     chan verdict
	early    chan early
	out      int                // deliveries that lie in jobs or are being handled
	waiting  []*broker.Delivery // those beyond: acked before they are handled, they are not bounded by the prefetch
}

// verdict is a handler's answer.
type verdict struct {
	tag        uint64
	seq        int64
	settlement settlement
}

func newSession(s *Service, c broker.Consumer) *session {
	return &session{
		service: s, consumer: c, jobs: make(chan *broker.Delivery, s.cfg.Prefetch), done: make(chan verdict, s.cfg.Prefetch),
		early: make(chan early),
	}
}

// closeTimeout bounds the orderly close of a channel; after it the socket is closed.
const closeTimeout = 2 * time.Second

// run serves the channel until it ends, or until a stop has been carried out. Before it returns all its handlers have.
func (s *session) run(ctx context.Context) {
	channel, end := context.WithCancel(ctx)
	defer end()
	var handlers sync.WaitGroup
	for range s.service.cfg.Concurrency {
		handlers.Go(func() { s.handle(ctx, channel) })
	}
	unwatch := context.AfterFunc(ctx, s.consumer.Abort) // a blocked socket must not outlive the hard stop
	defer unwatch()

	s.loop()

	end()
	close(s.jobs)
	handlers.Wait()
	s.giveBack()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = s.consumer.Close(closing) // by force when the bound is over; unsettled deliveries go back either way
}

// handle is the life of one handler goroutine. Once the channel has ended, what still lies in jobs is not started.
func (s *session) handle(abort, channel context.Context) {
	for d := range s.jobs {
		how := s.service.attempt(abort, channel, d, s.beforeCommit(channel, d))
		s.done <- verdict{d.Tag, d.Headers.Seq, how}
	}
}

// beforeCommit returns what is to happen before the COMMIT of a delivery; nil for nothing.
func (s *session) beforeCommit(channel context.Context, d *broker.Delivery) func() {
	cfg := &s.service.cfg
	if cfg.Ack != AckBeforeCommit && cfg.Reached == nil {
		return nil
	}
	return func() {
		if cfg.Ack == AckBeforeCommit {
			s.ackNow(channel, d.Tag)
		}
		s.service.reached(BeforeCommit, d.Headers.Seq)
	}
}

// loop is the owner's: it takes deliveries, hands them to handlers, gathers acks. It returns when the channel has ended
// or, after a stop, when nothing is unsettled any more.
func (s *session) loop() {
	ticker := time.NewTicker(s.service.cfg.AckInterval)
	defer ticker.Stop()
	deliveries, stopping := s.consumer.Deliveries(), s.service.stopping
	for {
		more := deliveries
		if len(s.waiting) > 0 { // let the broker keep them
			more = nil
		}
		select {
		case batch, open := <-more:
			if !open {
				deliveries = nil
			}
			s.take(batch)
		case v := <-s.done:
			s.settleAll(v)
			s.fill()
		case wish := <-s.early:
			s.grant(wish)
		case <-ticker.C:
			s.flush()
		case <-stopping:
			stopping = nil
			_ = s.consumer.Cancel() // an error ends the channel, which Done tells
		case <-s.consumer.Done():
			s.noteEnd()
			return
		}
		if stopping == nil && deliveries == nil && s.out+len(s.waiting) == 0 {
			s.flush()
			return
		}
	}
}

// take notes deliveries and hands them to the handlers.
func (s *session) take(batch []*broker.Delivery) {
	for _, d := range batch {
		s.note(d)
	}
	s.waiting = append(s.waiting, batch...)
	if n := len(batch); n > 0 && s.service.cfg.Ack == AckOnDelivery {
		s.ack(batch[n-1].Tag, true, n)
	}
	s.fill()
}

// fill hands over as many deliveries as may be out.
func (s *session) fill() {
	n := min(len(s.waiting), cap(s.jobs)-s.out)
	for _, d := range s.waiting[:n] {
		s.jobs <- d
	}
	s.out += n
	s.waiting = append(s.waiting[:0], s.waiting[n:]...)
}

func (s *session) note(d *broker.Delivery) {
	if own := s.service.cfg.Run; own != "" && d.Headers.Run != own {
		d.Headers.Seq = envelope.NoSeq // numbered by another run: it must not pass for one of ours
	}
	if s.service.cfg.Again != AgainByCopy { // nobody wrote the attempt into the message
		d.Headers.Retries = max(d.Headers.Retries, d.Returns())
	}
	at := s.service.cfg.Base.Offset(d.ReceivedAt)
	e := event.Delivered{Seq: d.Headers.Seq, Attempt: d.Headers.Attempt(), Redelivered: d.Redelivered, At: at}
	if h := &d.Headers; h.RetriedAt != 0 && !d.Redelivered {
		left := s.service.cfg.Base.FromMicros(h.RetriedAt) + time.Duration(h.RetryDelay)*time.Microsecond
		e.DelayError, e.HasDelayError = at-left, true
	}
	s.service.cfg.Observer.Delivered(e)
	switch s.service.cfg.Ack {
	case AckAfterCommit, AckBeforeCommit:
		s.acks.deliver(d.Tag)
	case AckAuto:
		s.service.cfg.Observer.Acked(1, at)
	}
}

// settleAll carries out a verdict and those that have come behind it.
func (s *session) settleAll(v verdict) {
	for waiting := len(s.done); ; waiting-- {
		s.out--
		s.settle(v)
		if waiting == 0 {
			return
		}
		v = <-s.done
	}
}

// settle carries out a handler's verdict.
func (s *session) settle(v verdict) {
	switch v.settlement {
	case ack:
		s.acks.finish(v.tag)
		if s.acks.finished >= s.service.cfg.AckBatch {
			s.flushPrefix()
		}
	case reject:
		if s.acks.remove(v.tag) {
			_ = s.consumer.Reject(v.tag, false) // an error ends the channel, which Done tells
		}
	case requeue:
		if s.acks.remove(v.tag) {
			_ = s.consumer.Reject(v.tag, true) // the same
		}
		s.service.cfg.Observer.Released(v.seq, s.service.cfg.Base.Now())
	case again:
		if s.acks.remove(v.tag) {
			s.giveAgain(v.tag)
		}
	case release: // stays unacked until the channel ends
		s.service.cfg.Observer.Released(v.seq, s.service.cfg.Base.Now())
	}
}

// giveAgain returns one delivery to its queue; an error ends the channel, which Done tells.
func (s *session) giveAgain(tag uint64) {
	if s.service.cfg.Again == AgainByNack {
		_ = s.consumer.Nack(tag)
		return
	}
	_ = s.consumer.Reject(tag, true)
}

func (s *session) flushPrefix() {
	if tag, n := s.acks.prefix(); n > 0 {
		s.ack(tag, n > 1, n)
	}
}

// flush acks everything finished, the contiguous ones together.
func (s *session) flush() {
	if s.acks.finished == 0 {
		return
	}
	s.flushPrefix()
	for _, tag := range s.acks.stragglers() {
		s.ack(tag, false, 1)
	}
}

func (s *session) ack(tag uint64, multiple bool, n int) {
	if s.consumer.Ack(tag, multiple) == nil {
		s.service.cfg.Observer.Acked(n, s.service.cfg.Base.Now())
	}
}

func (s *session) noteEnd() {
	if err := s.consumer.Err(); isCancelled(err) {
		s.service.cfg.Links.ConsumerCancelled(s.service.cfg.Base.Now())
	}
}

// giveBack tells of the deliveries that return to the queue with the channel.
func (s *session) giveBack() {
	now := s.service.cfg.Base.Now()
	for _, d := range s.waiting { // acked, and nobody will handle them
		s.service.cfg.Observer.Released(d.Headers.Seq, now)
	}
	for len(s.done) > 0 {
		if v := <-s.done; v.settlement == release {
			s.service.cfg.Observer.Released(v.seq, now)
		}
	}
}

func isCancelled(err error) bool { return errors.Is(err, broker.ErrConsumerCancelled) }
