package redrive

import (
	"slices"
	"time"

	"spillway/internal/broker"
)

// Filter chooses among parked messages. What is left empty chooses all; several values of one kind choose any of them, and
// several kinds what all of them choose.
type Filter struct {
	Types        []string      // message types
	ErrorClasses []string      // classes of the last failure: transient, permanent, unknown
	IDs          []string      // message ids
	OlderThan    time.Duration // first failed longer ago; 0 is any
	YoungerThan  time.Duration // first failed more recently; 0 is any
}

// Matches reports whether a message is chosen, at a moment.
func (f *Filter) Matches(d *broker.Delivery, now time.Time) bool {
	age := now.Sub(failedAt(d))
	return among(f.Types, d.Type) && among(f.ErrorClasses, d.Headers.Failure.Class) && among(f.IDs, d.MessageID) &&
		(f.OlderThan == 0 || age > f.OlderThan) && (f.YoungerThan == 0 || age < f.YoungerThan)
}

func among(wanted []string, have string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, have)
}

// failedAt is since when a message is in trouble: its first failure, or what is known instead when the broker parked it.
func failedAt(d *broker.Delivery) time.Time {
	for _, micros := range []int64{d.Headers.Failure.FirstFailedAt, d.Headers.ScheduledAt} {
		if micros != 0 {
			return time.UnixMicro(micros)
		}
	}
	return d.Timestamp
}
