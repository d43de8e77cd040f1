package experiment

import (
	"testing"
	"time"

	"spillway/internal/event"
	"spillway/internal/profile"
	"spillway/internal/result"
	"spillway/workers/retry"
)

func number(n int64) *int64 { return &n }

func TestExpectations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expect profile.Expect
		found  result.Messages
		broken string
	}{
		"nothing shed, queued or short is as expected":   {profile.Expect{Shed: number(0), Queued: number(0), ConfirmedShortage: number(0)}, result.Messages{Offered: 5, Confirmed: 5}, ""},
		"one shed is too many":                           {profile.Expect{Shed: number(0)}, result.Messages{Shed: 1}, "shed is 1, expected at most 0"},
		"any lifts the check":                            {profile.Expect{}, result.Messages{Shed: 9, QueuedAtEnd: 9, Parked: 9, Offered: 9}, ""},
		"parked is exact: fewer are as wrong as more":    {profile.Expect{Parked: number(3)}, result.Messages{Parked: 2}, "parked is 2, expected exactly 3"},
		"what was not confirmed is a shortage":           {profile.Expect{ConfirmedShortage: number(1)}, result.Messages{Offered: 10, Confirmed: 8}, "offered - confirmed is 2, expected at most 1"},
		"what is left in the queues at the end is named": {profile.Expect{Queued: number(4)}, result.Messages{QueuedAtEnd: 5}, "queued_at_end is 5, expected at most 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := ""
			for _, e := range expectations(&tt.expect, tt.found) {
				if e.broken() {
					broken += e.String()
				}
			}
			if broken != tt.broken {
				t.Errorf("broken %q, want %q", broken, tt.broken)
			}
		})
	}
}

func TestBlockedTimeCountsOnceHoweverManyLinksAreBlocked(t *testing.T) {
	t.Parallel()
	s := newSignals(false)
	s.Blocked("producer", true, 1*time.Second)
	s.Blocked("producer", true, 2*time.Second)
	s.Blocked("republisher", true, 3*time.Second)
	s.Blocked("producer", false, 4*time.Second)
	s.Blocked("republisher", false, 5*time.Second)
	if got := s.blockedFor(6 * time.Second); got != 5*time.Second {
		t.Errorf("blocked for %v so far, want 5s: one producer still is", got)
	}
	s.Blocked("producer", false, 7*time.Second)
	if got := s.blockedFor(9 * time.Second); got != 6*time.Second {
		t.Errorf("blocked for %v, want 6s", got)
	}
}

func TestTheBreakersTimeOpenIncludesHalfOpen(t *testing.T) {
	t.Parallel()
	s := newSignals(false)
	for i, state := range []string{"open", "half-open", "open", "half-open", "closed"} {
		s.BreakerChanged(state, time.Duration(i+1)*time.Second)
	}
	if got := s.breakerOpenFor(time.Minute); got != 4*time.Second || s.breakerOpens.Load() != 2 || s.breakerNow() != "closed" {
		t.Errorf("open for %v, %d times, now %s; want 4s, 2, closed", got, s.breakerOpens.Load(), s.breakerNow())
	}
}

func TestEveryReasonForParkingIsReported(t *testing.T) {
	t.Parallel()
	s := newSignals(true)
	s.Parked(event.Parked{Seq: 7, Reason: "bad-json", At: time.Second})
	all := s.parkedBy()
	if all["bad-json"] != 1 || len(all) != len(retry.Reasons()) {
		t.Errorf("reasons %v, want every one, and one bad-json", all)
	}
	if zero, there := all["attempts-exhausted"]; zero != 0 || !there {
		t.Error("a reason that did not occur is missing: a threshold on it would have no samples")
	}
	var seqs []int64
	s.eachParked(func(seq int64, _ time.Duration) { seqs = append(seqs, seq) })
	if len(seqs) != 1 || seqs[0] != 7 {
		t.Errorf("kept %v, want 7", seqs)
	}
}
