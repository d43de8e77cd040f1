package workers

import (
	"context"
	"math/rand/v2"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/workers/retry"
)

// Park is how a message reaches the parking lot.
type Park uint8

// Ways to park.
const (
	// ParkByPublish publishes a copy with the failure's metadata, then acks. It is the zero value.
	ParkByPublish Park = iota
	// ParkByReject rejects without requeue and leaves the routing to the broker; only x-death tells of it.
	ParkByReject
)

// Again is how a message that is to be retried comes back.
type Again uint8

// Ways to come back.
const (
	// AgainByCopy publishes a copy to a tier, then acks. It is the zero value, and the one that keeps the rules of the design.
	AgainByCopy Again = iota
	// AgainByReject returns the message to its queue, which counts it as failed. Attempts are what the broker counts.
	AgainByReject
	// AgainByNack returns it, which RabbitMQ 4.3 counts as acquired, and not as failed: its delivery limit never ends that.
	AgainByNack
)

// Routes says where the workers' own publishes go.
type Routes struct {
	RetryExchange   string
	ParkingExchange string
	ParkingKey      string
}

// settlement is what the owner of the channel is to do with a delivery.
type settlement uint8

const (
	ack settlement = iota
	reject
	requeue // reject it, back to the queue: that counts towards the delivery limit, which a nack does not (RabbitMQ 4.3)
	again   // the same, or a nack, of an attempt that is told as a retry already
	release // leave it unsettled: it goes back to the queue when the channel ends
)

// settle finds what is to be done with a delivery after its attempt. For a failure it publishes the copy first and waits
// until the broker has taken it: the original is acked only after (rule 4), so a crash in between gives two copies,
// never none. ctx ends with the channel that the delivery came on.
func (s *Service) settle(ctx context.Context, d *broker.Delivery, h handled) settlement {
	if h.class == 0 {
		return ack
	}
	decision := s.cfg.Budget.Decide(s.failure(d, h))
	if !decision.Park && !s.tokens.Spend(s.cfg.Base.Now()) {
		decision = s.cfg.Budget.Over(decision, s.cfg.Tokens)
	}
	if decision.Park {
		return s.park(ctx, d, h, decision)
	}
	if s.cfg.Again != AgainByCopy {
		return s.comeAgain(ctx, d, h, decision)
	}
	return s.retry(ctx, d, h, decision)
}

// comeAgain leaves the message to the broker, which gives it out again at once or after a delay of its own; with Sleep the handler
// is busy with it meanwhile.
func (s *Service) comeAgain(ctx context.Context, d *broker.Delivery, h handled, to retry.Decision) settlement {
	s.cfg.Observer.Retried(event.Retried{
		Seq: d.Headers.Seq, Attempt: d.Headers.Attempt(), Tier: to.Tier, Delay: to.Delay, Class: h.class.String(), At: s.cfg.Base.Now(),
	})
	if s.cfg.Sleep && !broker.Wait(ctx, to.Delay) {
		return release
	}
	return again
}

func (s *Service) failure(d *broker.Delivery, h handled) retry.Failure {
	attempt := d.Headers.Attempt()
	f := retry.Failure{
		Class: h.class, Reason: h.reason, Attempt: attempt, Born: s.born(d, h.order), Now: s.cfg.Base.Now(),
		Spread: retry.Spread(d.MessageID, d.Headers.Seq, attempt, s.cfg.Seed),
	}
	if deadline := deadlineOf(d); deadline != 0 {
		f.Deadline = s.cfg.Base.FromMicros(deadline)
	}
	return f
}

// born is when the age budget began: at a redrive, else when the order occurred, else when it was due.
func (s *Service) born(d *broker.Delivery, o envelope.Order) time.Duration {
	switch {
	case d.Headers.RedrivenAt != 0:
		return s.cfg.Base.FromMicros(d.Headers.RedrivenAt)
	case !o.OccurredAt.IsZero():
		return s.cfg.Base.FromMicros(o.OccurredAt.UnixMicro())
	default:
		return s.cfg.Base.FromMicros(d.Headers.ScheduledAt)
	}
}

// deadlineOf returns the business deadline in microseconds since the epoch, 0 for none. A producer's TTL is one; it is
// not copied to a retry, where it would expire in the tier. It counts from when the message was sent: the timestamp
// stands in for a producer that does not say, a second late at most since it holds whole seconds, and for one without
// it the delivery does.
func deadlineOf(d *broker.Delivery) int64 {
	switch {
	case d.Headers.Deadline != 0 || d.Expiration == 0:
		return d.Headers.Deadline
	case d.Headers.SentAt != 0:
		return d.Headers.SentAt + d.Expiration.Microseconds()
	case !d.Timestamp.IsZero():
		return d.Timestamp.Add(time.Second + d.Expiration).UnixMicro()
	default:
		return d.ReceivedAt.Add(d.Expiration).UnixMicro()
	}
}

func (s *Service) retry(ctx context.Context, d *broker.Delivery, h handled, to retry.Decision) settlement {
	m := s.copyOf(d, h)
	m.Exchange, m.RoutingKey = s.cfg.Routes.RetryExchange, to.Key
	m.Headers.Retries = d.Headers.Retries + 1
	m.Headers.RetryDelay = to.Delay.Microseconds()
	if s.cfg.Expire {
		m.Expiration = to.Delay
	}
	at, ok := s.deliver(ctx, &m)
	if !ok {
		return release
	}
	s.cfg.Observer.Retried(event.Retried{
		Seq: d.Headers.Seq, Attempt: d.Headers.Attempt(), Tier: to.Tier, Delay: to.Delay, Class: h.class.String(), At: at,
	})
	s.reached(AfterRetry, d.Headers.Seq)
	return ack
}

func (s *Service) park(ctx context.Context, d *broker.Delivery, h handled, to retry.Decision) settlement {
	how, at := reject, s.cfg.Base.Now()
	if s.cfg.Park == ParkByPublish {
		m := s.copyOf(d, h)
		m.Exchange, m.RoutingKey = s.cfg.Routes.ParkingExchange, s.cfg.Routes.ParkingKey
		var ok bool
		if at, ok = s.deliver(ctx, &m); !ok {
			return release
		}
		how = ack
	}
	s.cfg.Observer.Parked(event.Parked{
		Seq: d.Headers.Seq, Attempt: d.Headers.Attempt(), Reason: string(to.Reason), At: at,
	})
	return how
}

// copyOf returns the message as it travels on, with the failure's metadata. The properties stay; the producer's expiration
// does not.
func (s *Service) copyOf(d *broker.Delivery, h handled) broker.Message {
	m := broker.Message{
		MessageID: d.MessageID, CorrelationID: d.CorrelationID, Type: d.Type, ContentType: d.ContentType,
		Timestamp: d.Timestamp, Headers: d.Headers, Body: d.Body,
	}
	m.Headers.Deadline = deadlineOf(d)
	f := &m.Headers.Failure
	f.Class, f.LastError = h.class.String(), h.err.Error()
	f.SchemaVersion, f.Producer, f.WorkerVersion = h.order.SchemaVersion, h.order.Producer, s.cfg.Version
	if f.FirstFailedAt == 0 {
		f.FirstFailedAt = s.cfg.Base.Micros(s.cfg.Base.Now())
		f.OriginalExchange, f.OriginalRoutingKey = d.Exchange, d.RoutingKey
	}
	return m
}

// redeliverBackoff spaces the tries to hand a copy to a broker that does not take it: the original stays unacked
// meanwhile, and haste would only add load.
var redeliverBackoff = broker.Backoff{Min: 50 * time.Millisecond, Max: 5 * time.Second}

// deliver publishes a copy until the broker confirms it, and returns when it did. It reports false when the channel of
// the original ended first.
func (s *Service) deliver(ctx context.Context, m *broker.Message) (at time.Duration, ok bool) {
	for tries := 0; ; tries++ {
		m.Headers.RetriedAt = s.cfg.Base.Micros(s.cfg.Base.Now())
		if answer := s.republisher.publish(ctx, s.cfg.RetryPublishTimeout, m); answer.Outcome == broker.Confirmed {
			return s.cfg.Base.Offset(answer.At), true
		}
		if !broker.Wait(ctx, redeliverBackoff.Delay(tries, rand.Float64())) {
			return 0, false
		}
	}
}
