package workers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
)

// republisher publishes the workers' own messages, retries and parkings, and waits for each outcome. It has a
// connection of its own: a broker under memory alarm stops reading from connections that publish, and acks must still get
// through. It is safe for concurrent use.
type republisher struct {
	base     *timebase.Base
	observer event.WorkObserver
	producer *broker.Producer
	next     atomic.Uint64

	mu      sync.Mutex
	waiting map[uint64]chan broker.Settlement // one per publish under way, so bounded by the handlers
}

func newRepublisher(base *timebase.Base, driver broker.Driver, window int, observer event.WorkObserver, links event.LinkObserver) *republisher {
	r := &republisher{base: base, observer: observer, waiting: map[uint64]chan broker.Settlement{}}
	r.producer = broker.NewProducer(broker.ProducerConfig{
		Driver: driver, Name: "spillway-republisher", Window: window, Backoff: broker.Reconnect, Settled: r.settled,
		Flow:        blockedLink{links, base},
		Reconnected: func() { links.Reconnected("republisher", base.Now()) },
	})
	return r
}

func (r *republisher) run(ctx context.Context) error { return r.producer.Run(ctx) }

// publish sends one message and returns its settlement; a time-out, or the end of ctx, is Unknown.
func (r *republisher) publish(ctx context.Context, timeout time.Duration, m *broker.Message) broker.Settlement {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	token := r.next.Add(1)
	answer := make(chan broker.Settlement, 1) // room for the one answer, so that settling never waits
	r.mu.Lock()
	r.waiting[token] = answer
	r.mu.Unlock()
	s := r.await(ctx, token, m, answer)
	r.observer.Republished(s.Outcome, r.base.Offset(s.At))
	return s
}

func (r *republisher) await(ctx context.Context, token uint64, m *broker.Message, answer <-chan broker.Settlement) broker.Settlement {
	unknown := func() broker.Settlement {
		r.take(token)
		return broker.Settlement{Token: token, Outcome: broker.Unknown, At: time.Now()}
	}
	if err := r.producer.Publish(ctx, token, m); err != nil {
		return unknown()
	}
	select {
	case s := <-answer:
		return s
	case <-ctx.Done():
		return unknown()
	}
}

func (r *republisher) settled(answers []broker.Settlement) {
	for _, s := range answers {
		if answer := r.take(s.Token); answer != nil {
			answer <- s
		}
	}
}

// take removes a waiter; nil when its time-out was first.
func (r *republisher) take(token uint64) chan broker.Settlement {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := r.waiting[token]
	delete(r.waiting, token)
	return answer
}

// blockedLink turns the driver's back pressure into link events.
type blockedLink struct {
	links event.LinkObserver
	base  *timebase.Base
}

// Blocked implements broker.Flow.
func (b blockedLink) Blocked(blocked bool, _ string, at time.Time) {
	b.links.Blocked("republisher", blocked, b.base.Offset(at))
}
