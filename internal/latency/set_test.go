package latency_test

import (
	"maps"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/latency"
)

var (
	_ event.LoadObserver = (*latency.Set)(nil)
	_ event.WorkObserver = (*latency.Set)(nil)
)

const ms = time.Millisecond

func TestEachDurationStartsAtItsOwnClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		event func(*latency.Set)
		want  map[string]float64 // milliseconds by recorder; every other one stays empty
	}{
		{"a first publish lags behind its due instant",
			func(s *latency.Set) { s.Sent(event.Sent{Scheduled: 100 * ms, At: 102 * ms}) },
			map[string]float64{"schedule_lag": 2}},
		{"a republish has no lag",
			func(s *latency.Set) { s.Sent(event.Sent{Scheduled: 100 * ms, At: 900 * ms, Republish: true}) }, nil},
		{"a confirm counts from sent, acceptance from scheduled",
			func(s *latency.Set) {
				s.Settled(event.Settled{Scheduled: 100 * ms, Sent: 150 * ms, At: 160 * ms, Outcome: broker.Confirmed})
			},
			map[string]float64{"confirm": 10, "acceptance": 60, "acceptance_uncorrected": 10}},
		{"a nack has no latency",
			func(s *latency.Set) { s.Settled(event.Settled{At: 160 * ms, Outcome: broker.Nacked}) }, nil},
		{"nor has a return",
			func(s *latency.Set) { s.Settled(event.Settled{At: 160 * ms, Outcome: broker.Returned}) }, nil},
		{"nor has an unknown",
			func(s *latency.Set) { s.Settled(event.Settled{At: 160 * ms, Outcome: broker.Unknown}) }, nil},
		{"an effect ends a sojourn", func(s *latency.Set) { s.Handled(handled(event.Applied)) },
			map[string]float64{"sojourn": 90, "sojourn_uncorrected": 70, "service": 5}},
		{"a refusal is an end too", func(s *latency.Set) { s.Handled(handled(event.Refused)) },
			map[string]float64{"sojourn": 90, "sojourn_uncorrected": 70, "service": 5}},
		{"a duplicate is not", func(s *latency.Set) { s.Handled(handled(event.Duplicate)) }, nil},
		{"nor is a failure", func(s *latency.Set) { s.Handled(handled(event.Transient)) }, nil},
		{"a foreign message has a service time only",
			func(s *latency.Set) { e := handled(event.Applied); e.Seq = -1; s.Handled(e) },
			map[string]float64{"service": 5}},
		{"without a time of sending there is no uncorrected sojourn",
			func(s *latency.Set) { e := handled(event.Applied); e.SentAt = 0; s.Handled(e) },
			map[string]float64{"sojourn": 90, "service": 5}},
		{"a return from a tier has a delay error",
			func(s *latency.Set) { s.Delivered(event.Delivered{DelayError: 3 * ms, HasDelayError: true}) },
			map[string]float64{"delay_error": 3}},
		{"a first delivery has none", func(s *latency.Set) { s.Delivered(event.Delivered{DelayError: 3 * ms}) }, nil},
		{"what is warm-up is not recorded", warmup, nil},
		{"what has no duration is not recorded", timeless, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set := latency.NewSet()
			row.event(set)
			got := make(map[string]float64)
			for name, s := range set.Summaries() {
				got[name] = s.Max * 1e3
			}
			if !maps.EqualFunc(got, row.want, func(a, b float64) bool { return a >= b && a <= b*1.001 }) {
				t.Errorf("recorded %v ms, want %v", got, row.want)
			}
		})
	}
}

// handled is a message due at 100 ms, sent at 120, handled from 185 to 190.
func handled(r event.Result) event.Handled {
	return event.Handled{
		Seq: 1, Scheduled: 100 * ms, SentAt: 120 * ms, Started: 185 * ms, Finished: 190 * ms, Result: r,
	}
}

func warmup(s *latency.Set) {
	s.Sent(event.Sent{At: ms, Warmup: true})
	s.Settled(event.Settled{At: ms, Outcome: broker.Confirmed, Warmup: true})
	e := handled(event.Applied)
	e.Warmup = true
	s.Handled(e)
}

func timeless(s *latency.Set) {
	s.Arrived(event.Arrival{Scheduled: ms})
	s.Shed(1, ms)
	s.Retried(event.Retried{At: ms, Delay: ms})
	s.Parked(event.Parked{At: ms})
	s.Released(1, ms)
	s.Acked(1, ms)
	s.Republished(broker.Confirmed, ms)
}

func TestMergedSetsAreTheirSum(t *testing.T) {
	t.Parallel()
	a, b := latency.NewSet(), latency.NewSet()
	for _, s := range []*latency.Set{a, b} {
		for _, r := range s.All() {
			if r != s.AcceptanceUncorrected { // another name of Confirm
				r.Record(ms)
			}
		}
	}
	a.Merge(b)
	summaries := a.Summaries()
	if len(summaries) != 9 {
		t.Errorf("%d recorders have samples, want 9", len(summaries))
	}
	for name, s := range summaries {
		if s.Count != 2 {
			t.Errorf("%s has %d samples, want 2", name, s.Count)
		}
	}
}
