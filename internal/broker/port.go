// Package broker is the port between spillway and a message broker: the words that load side and workers speak, with
// no driver in them. The AMQP driver lives in broker/rabbit below it.
//
// The unit is an epoch: one connection with one channel. An epoch that ends takes its delivery tags and its unsettled
// publishes with it, so a stale tag cannot be used and a lost confirm becomes Unknown. Reconnecting is the business of
// the callers (see Producer here and the worker's session loop), never of the driver.
package broker

import (
	"context"
	"time"

	"spillway/internal/envelope"
)

// Outcome is what came of one publish. The zero value is no outcome, so that a forgotten field never reads as success.
type Outcome uint8

const (
	_ Outcome = iota
	// Confirmed: the broker took responsibility for the message.
	Confirmed
	// Returned: mandatory, and no queue was bound for it. RabbitMQ confirms these too; Returned wins.
	Returned
	// Nacked: the broker refused it (reject-publish, an internal fault).
	Nacked
	// Unknown: the channel went away before an answer came. It may have arrived.
	Unknown
)

// Outcomes lists every outcome, in the order in which they are reported.
var Outcomes = [...]Outcome{Confirmed, Returned, Nacked, Unknown}

// String returns the name used in results and metric labels.
func (o Outcome) String() string {
	switch o {
	case Confirmed:
		return "confirmed"
	case Returned:
		return "returned"
	case Nacked:
		return "nacked"
	case Unknown:
		return "unknown"
	default:
		return "none"
	}
}

// Message is one publish. All messages are published mandatory and persistent. The driver does not keep Body after
// Publish returns.
type Message struct {
	Exchange      string // "" is the default exchange, whose routing keys are queue names
	RoutingKey    string
	MessageID     string
	CorrelationID string
	Type          string
	ContentType   string
	Timestamp     time.Time     // whole seconds on the wire
	Expiration    time.Duration // per-message TTL; 0 is none
	Headers       envelope.Headers
	Body          []byte
}

// Settlement reports the outcome of one publish.
type Settlement struct {
	Token   uint64 // as given to Publish
	Outcome Outcome
	At      time.Time // when the answer was read from the connection, or the loss was seen; monotonic
	Reason  string    // the broker's words for Returned, the cause for Unknown; "" otherwise
}

// Publisher is one epoch of publishing with confirms. One goroutine calls Publish; Close and Abort may be called from
// any.
type Publisher interface {
	// Publish writes one message. After a nil error exactly one Settlement with this token is delivered, Unknown if
	// the epoch ends first. After an error none is, and the epoch is over or ending: the message may have reached the
	// broker. Publish blocks while the broker does not read (a blocked connection); Abort releases it, and so does the end
	// of ctx, which costs the epoch, since nothing can follow half a message.
	Publish(ctx context.Context, token uint64, m *Message) error
	// Done is closed when the epoch is over and every settlement has been delivered.
	Done() <-chan struct{}
	// Err says why the epoch ended; nil before Done and after an orderly Close.
	Err() error
	// Close ends the epoch in an orderly way, bounded by ctx, then by force. Unanswered publishes settle as Unknown.
	Close(ctx context.Context) error
	// Abort closes the socket at once. It never blocks.
	Abort()
}

// Delivery is one message handed to a worker. Tag is valid in the consumer that delivered it, and only there.
type Delivery struct {
	Tag           uint64
	Redelivered   bool // a hint for people; nothing decides by it
	DeliveryCount int  // the broker's count of earlier returns of this message (x-delivery-count); 0 when absent
	AcquiredCount int  // of earlier deliveries, also those that a nack returned (x-acquired-count, RabbitMQ 4.3); 0 when absent
	Exchange      string
	RoutingKey    string
	MessageID     string
	CorrelationID string
	Type          string
	ContentType   string
	Timestamp     time.Time
	Expiration    time.Duration
	Headers       envelope.Headers
	Body          []byte
	ReceivedAt    time.Time // monotonic
}

// Returns is how often the broker gave this message out before, however it came back. Brokers before 4.3 count a nack as a failed
// delivery and know no acquired count; later ones count it as acquired alone.
func (d *Delivery) Returns() int { return max(d.DeliveryCount, d.AcquiredCount) }

// ConsumerOptions says what to consume and how.
type ConsumerOptions struct {
	Queue    string
	Tag      string // consumer tag, unique in the run
	Prefetch int    // 1 to 65535; the broker reads 0 as "2,000" on a quorum queue, so 0 is refused
	AutoAck  bool   // the broker settles a delivery as it writes it, and looks at no prefetch
}

// Consumer is one epoch of consuming: one connection, one channel, one consumer. One goroutine owns it; Abort may be
// called from any.
type Consumer interface {
	// Deliveries gives what has come, in order, as many at a time as were read at once. It is closed when no more will
	// come: after Cancel once the last in flight was handed over, after a cancel by the broker, or after the epoch ended.
	// Err tells which. The receiver owns what it gets.
	Deliveries() <-chan []*Delivery
	// Ack settles one delivery, or with multiple every unsettled one up to the tag. Only contiguous finished tags may be
	// acked with multiple: the broker closes the channel on an unknown tag.
	Ack(tag uint64, multiple bool) error
	// Reject returns one delivery (requeue, which raises the delivery count) or dead-letters it (no requeue).
	Reject(tag uint64, requeue bool) error
	// Nack returns one delivery, and leaves the delivery count as it is (RabbitMQ 4.3; before, it counts as a reject).
	Nack(tag uint64) error
	// Cancel asks the broker to send nothing more. Unsettled deliveries stay valid.
	Cancel() error
	// Done is closed when the epoch is over: connection or channel gone, or consumer cancelled by the broker
	// (ErrConsumerCancelled). Unsettled deliveries go back to the queue once the consumer is closed.
	Done() <-chan struct{}
	Err() error
	// Close ends the epoch, bounded by ctx, then by force. Unsettled deliveries return to the queue.
	Close(ctx context.Context) error
	Abort()
}

// Flow hears of the broker's back pressure on a publishing connection. Implementations must not block.
type Flow interface {
	// Blocked reports connection.blocked (true) and connection.unblocked or the end of a blocked connection (false).
	Blocked(blocked bool, reason string, at time.Time)
}

// Driver opens epochs on one broker. It is safe for concurrent use.
type Driver interface {
	// OpenPublisher dials a connection of its own. settled is given the answers as they come, in the order in which they
	// were read and as many at a time as were read at once. It is never called twice at once, must not block, and does not
	// keep the slice. window bounds the unsettled publishes, at most 65535. name shows as the connection's name at the
	// broker.
	OpenPublisher(ctx context.Context, name string, window int, settled func([]Settlement), flow Flow) (Publisher, error)
	// OpenConsumer dials a connection of its own and starts consuming.
	OpenConsumer(ctx context.Context, name string, o ConsumerOptions) (Consumer, error)
}
