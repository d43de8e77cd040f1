package broker

import "errors"

var (
	// ErrClosed is returned by calls on an epoch that is over.
	ErrClosed = errors.New("the channel is closed")
	// ErrConsumerCancelled is a consumer's Err after the broker cancelled it: its queue was deleted, or the consumer
	// time-out struck (RabbitMQ 4.3 cancels and leaves the channel open, where a late ack would re-arm a consumer that
	// nobody reads).
	ErrConsumerCancelled = errors.New("the broker cancelled the consumer")
	// ErrUnreachable is returned when no connection could be made: refused, time-out, name not resolved.
	ErrUnreachable = errors.New("the broker cannot be reached")
	// ErrLoginRefused is returned when the broker refused the credentials or the virtual host.
	ErrLoginRefused = errors.New("the broker refused the login")
	// ErrRightMissing is returned when the user lacks a permission that the run needs.
	ErrRightMissing = errors.New("the broker user lacks a right")
	// ErrTooOld is returned for a broker below the oldest version that has what the topology needs.
	ErrTooOld = errors.New("the broker is too old")
)
