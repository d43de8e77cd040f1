// Package event holds the events of a run: what happened to one message, when, as plain values. Core packages
// (loadgen, workers, broker) announce them to small observer interfaces; ledger, latency recorders and metrics implement
// these, so all three see the same run. The package is a leaf: it holds no behaviour but fan-out.
//
// All times are offsets on the run's timebase. Events of one message come from several goroutines; an observer must be
// safe for concurrent use and must not block.
package event

import (
	"time"

	"spillway/internal/broker"
)

// Arrival is a message that became due. Bad says how the body was spoilt on purpose; "" is a good one.
type Arrival struct {
	Seq       int64
	Scheduled time.Duration
	Warmup    bool
	Bad       string
}

// Sent is one write of a message to the broker; Republish marks every write after the first. Relayed marks a write that
// follows one to a database: how late it is says how far behind the database or the relay is, and nothing of the generator.
type Sent struct {
	Seq       int64
	Scheduled time.Duration
	At        time.Duration
	Republish bool
	Relayed   bool
	Warmup    bool
}

// Settled is the outcome of one publish by the producer.
type Settled struct {
	Seq       int64
	Scheduled time.Duration
	Sent      time.Duration
	At        time.Duration
	Outcome   broker.Outcome
	Warmup    bool
	Final     bool // nothing more will be tried for this message
	Replay    bool // of a message that was confirmed before
}

// LoadObserver hears of the load side.
type LoadObserver interface {
	Arrived(Arrival)
	// Shed reports an arrival that was never sent because the window stayed full beyond its bound.
	Shed(seq int64, at time.Duration)
	Sent(Sent)
	Settled(Settled)
}

// Delivered is one delivery to a worker. Seq is -1 for a message that carries no sequence of this run.
type Delivered struct {
	Seq         int64
	Attempt     int // 1-based, ours
	Redelivered bool
	At          time.Duration
	// DelayError is the time since the copy was written to its retry tier, less that tier's TTL. It holds the way there and
	// the wait in the work queue too, so it is an upper bound; HasDelayError is false for first deliveries.
	DelayError    time.Duration
	HasDelayError bool
}

// Result is what a handler made of a delivery.
type Result uint8

const (
	_ Result = iota
	// Applied: a first-time effect was committed.
	Applied
	// Refused: a business refusal was committed as the result, with its outgoing event.
	Refused
	// Duplicate: the inbox had the id; nothing changed.
	Duplicate
	// Transient: an error that a later attempt may not meet.
	Transient
	// Permanent: an error that every attempt would meet.
	Permanent
	// UnknownError: an error of no known class: a new defect.
	UnknownError
)

// Results lists every result in the order in which they are reported.
var Results = [...]Result{Applied, Refused, Duplicate, Transient, Permanent, UnknownError}

// String returns the name used in results and metric labels.
func (r Result) String() string {
	return [...]string{"none", "applied", "refused", "duplicate", "transient", "permanent", "unknown"}[r]
}

// Handled is one finished call of the handler. Started to Finished is the service time; for a commit, Finished is when
// COMMIT returned.
type Handled struct {
	Seq       int64
	Attempt   int
	Scheduled time.Duration
	SentAt    time.Duration // when the producer wrote this copy
	Started   time.Duration
	Finished  time.Duration
	Result    Result
	Simulated bool // the profile's failure model asked for this result
	Warmup    bool
}

// Retried is a message whose copy was confirmed in a retry tier. Tier is the nominal name ("5s"), Delay the TTL of the
// queue it went to (after time scale and jitter).
type Retried struct {
	Seq     int64
	Attempt int // the attempt that failed
	Tier    string
	Delay   time.Duration
	Class   string
	At      time.Duration // confirm seen
}

// Parked is a message whose copy was confirmed in the parking lot, or that was rejected to it.
type Parked struct {
	Seq     int64
	Attempt int
	Reason  string // a closed set, see retry.Reason
	At      time.Duration
}

// WorkObserver hears of the workers.
type WorkObserver interface {
	Delivered(Delivered)
	Handled(Handled)
	Retried(Retried)
	Parked(Parked)
	// Released reports a delivery that went back to the work queue unsettled, because its channel ended.
	Released(seq int64, at time.Duration)
	// Acked reports n deliveries settled with the broker.
	Acked(n int, at time.Duration)
	// Republished reports the outcome of one publish by a worker (retry or park), each try counted.
	Republished(outcome broker.Outcome, at time.Duration)
}

// LinkObserver hears of connections. role is "producer", "relay", "worker" or "republisher".
type LinkObserver interface {
	Reconnected(role string, at time.Duration)
	ConsumerCancelled(at time.Duration)
	Blocked(role string, blocked bool, at time.Duration)
}

// BreakerObserver hears of the circuit breaker. state is "closed", "open" or "half-open".
type BreakerObserver interface {
	BreakerChanged(state string, at time.Duration)
}
