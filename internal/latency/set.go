package latency

import (
	"slices"
	"sync"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// Set is the recorders of one run. It implements event.LoadObserver and event.WorkObserver, is safe for concurrent use
// and never blocks. Only the measured part is recorded: what belongs to the warm-up, by its due instant, is not.
//
// A duration whose clock starts at the due instant is free of coordinated omission: when the generator or the broker
// stalls, the messages that should have been sent meanwhile have waited too. Beside it stands the uncorrected one,
// whose clock starts when the message was sent, so that the difference shows.
type Set struct {
	Confirm               *Recorder // confirm seen - sent, of the publish that was confirmed
	Acceptance            *Recorder // confirm seen - scheduled
	AcceptanceUncorrected *Recorder // confirm seen - sent: Confirm under the name that stands beside Acceptance
	Sojourn               *Recorder // effect or refusal committed - scheduled
	SojournUncorrected    *Recorder // effect or refusal committed - sent, of the publish by the producer
	Service               *Recorder // COMMIT - handler start, of effects and refusals
	ScheduleLag           *Recorder // sent - scheduled, of first publishes: the generator's own health
	RelayLag              *Recorder // confirm seen - outbox row written
	DelayError            *Recorder // delivered again - written to a retry tier - its TTL; warm-up included

	confirming *sync.Mutex // of Confirm and Acceptance
	handling   *sync.Mutex // of Service and both sojourns
}

// NewSet returns empty recorders.
func NewSet() *Set {
	confirming, settled := together("confirm", "acceptance")
	handling, handled := together("service", "sojourn", "sojourn_uncorrected")
	return &Set{
		Confirm:               settled[0],
		Acceptance:            settled[1],
		AcceptanceUncorrected: settled[0].As("acceptance_uncorrected"),
		Service:               handled[0],
		Sojourn:               handled[1],
		SojournUncorrected:    handled[2],
		confirming:            confirming,
		handling:              handling,
		ScheduleLag:           NewRecorder("schedule_lag"),
		RelayLag:              NewRecorder("relay_lag"),
		DelayError:            NewRecorder("delay_error"),
	}
}

// All returns the recorders in the order in which they are reported.
func (s *Set) All() []*Recorder {
	return []*Recorder{
		s.Confirm, s.Acceptance, s.AcceptanceUncorrected, s.Sojourn, s.SojournUncorrected, s.Service, s.ScheduleLag,
		s.RelayLag, s.DelayError,
	}
}

// Summaries returns the summary of every recorder that has samples, by name.
func (s *Set) Summaries() map[string]Summary {
	out := make(map[string]Summary)
	for _, r := range s.All() {
		if summary, ok := r.Summary(); ok {
			out[r.Name()] = summary
		}
	}
	return out
}

// Merge adds what other has recorded, recorder by recorder.
func (s *Set) Merge(other *Set) {
	from, to := other.All(), s.All()
	for i, r := range to {
		if !r.repeats(to[:i]) {
			r.Merge(from[i])
		}
	}
}

// repeats reports whether a recorder is one of the others under another name.
func (r *Recorder) repeats(others []*Recorder) bool {
	return slices.ContainsFunc(others, func(o *Recorder) bool { return o.samples == r.samples })
}

// Arrived implements event.LoadObserver; an arrival has no duration yet.
func (s *Set) Arrived(event.Arrival) {}

// Shed implements event.LoadObserver; what was never sent has no latency.
func (s *Set) Shed(int64, time.Duration) {}

// Sent implements event.LoadObserver.
func (s *Set) Sent(e event.Sent) {
	if !e.Warmup && !e.Republish && !e.Relayed {
		s.ScheduleLag.Record(e.At - e.Scheduled)
	}
}

// Settled implements event.LoadObserver.
func (s *Set) Settled(e event.Settled) {
	if e.Warmup || e.Replay || e.Outcome != broker.Confirmed {
		return
	}
	s.confirming.Lock()
	s.Confirm.record(e.At - e.Sent)
	s.Acceptance.record(e.At - e.Scheduled)
	s.confirming.Unlock()
}

// Delivered implements event.WorkObserver.
func (s *Set) Delivered(e event.Delivered) {
	if e.HasDelayError {
		s.DelayError.Record(e.DelayError)
	}
}

// Handled implements event.WorkObserver. A message of no sequence was not scheduled by this run and has a service time
// only; an unknown time of sending is 0, since nothing is sent at the very start of a run.
func (s *Set) Handled(e event.Handled) {
	if e.Warmup || (e.Result != event.Applied && e.Result != event.Refused) {
		return
	}
	s.handling.Lock()
	defer s.handling.Unlock()
	s.Service.record(e.Finished - e.Started)
	if e.Seq < 0 {
		return
	}
	s.Sojourn.record(e.Finished - e.Scheduled)
	if e.SentAt != 0 {
		s.SojournUncorrected.record(e.Finished - e.SentAt)
	}
}

// Retried implements event.WorkObserver.
func (s *Set) Retried(event.Retried) {}

// Parked implements event.WorkObserver.
func (s *Set) Parked(event.Parked) {}

// Released implements event.WorkObserver.
func (s *Set) Released(int64, time.Duration) {}

// Acked implements event.WorkObserver.
func (s *Set) Acked(int, time.Duration) {}

// Republished implements event.WorkObserver.
func (s *Set) Republished(broker.Outcome, time.Duration) {}
