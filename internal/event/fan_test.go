package event_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// tape writes down every call, with its arguments, under a name.
type tape struct {
	name  string
	calls *[]string
}

func (t tape) add(what string, args ...any) {
	*t.calls = append(*t.calls, fmt.Sprint(t.name, " ", what, args))
}

func (t tape) Arrived(e event.Arrival)                       { t.add("Arrived", e) }
func (t tape) Shed(seq int64, at time.Duration)              { t.add("Shed", seq, at) }
func (t tape) Sent(e event.Sent)                             { t.add("Sent", e) }
func (t tape) Settled(e event.Settled)                       { t.add("Settled", e) }
func (t tape) Delivered(e event.Delivered)                   { t.add("Delivered", e) }
func (t tape) Handled(e event.Handled)                       { t.add("Handled", e) }
func (t tape) Retried(e event.Retried)                       { t.add("Retried", e) }
func (t tape) Parked(e event.Parked)                         { t.add("Parked", e) }
func (t tape) Released(seq int64, at time.Duration)          { t.add("Released", seq, at) }
func (t tape) Acked(n int, at time.Duration)                 { t.add("Acked", n, at) }
func (t tape) Republished(o broker.Outcome, a time.Duration) { t.add("Republished", o, a) }
func (t tape) Reconnected(role string, at time.Duration)     { t.add("Reconnected", role, at) }
func (t tape) ConsumerCancelled(at time.Duration)            { t.add("ConsumerCancelled", at) }
func (t tape) Blocked(role string, b bool, at time.Duration) { t.add("Blocked", role, b, at) }
func (t tape) BreakerChanged(state string, at time.Duration) { t.add("BreakerChanged", state, at) }

// announce calls every method of every observer once.
func announce(l event.LoadObserver, w event.WorkObserver, k event.LinkObserver, b event.BreakerObserver) {
	l.Arrived(event.Arrival{Seq: 1})
	l.Shed(2, 3)
	l.Sent(event.Sent{Seq: 4})
	l.Settled(event.Settled{Seq: 5})
	w.Delivered(event.Delivered{Seq: 6})
	w.Handled(event.Handled{Seq: 7})
	w.Retried(event.Retried{Seq: 8})
	w.Parked(event.Parked{Seq: 9})
	w.Released(10, 11)
	w.Acked(12, 13)
	w.Republished(broker.Nacked, 14)
	k.Reconnected("worker", 15)
	k.ConsumerCancelled(16)
	k.Blocked("producer", true, 17)
	b.BreakerChanged("open", 18)
}

func TestEveryObserverHearsEveryEventInOrder(t *testing.T) {
	t.Parallel()
	var got, alone []string
	a, b := tape{"a", &got}, tape{"b", &got}
	announce(event.Load{a, b}, event.Work{a, b}, event.Links{a, b}, event.Breakers{a, b})
	single := tape{"", &alone}
	announce(single, single, single, single)
	var want []string
	for _, call := range alone {
		want = append(want, "a"+call, "b"+call)
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard\n%q\nwant\n%q", got, want)
	}
}

func TestNopObserversAndEmptyFansHearInSilence(t *testing.T) {
	t.Parallel()
	announce(event.NopLoad{}, event.NopWork{}, event.NopLinks{}, event.Breakers{})
	announce(event.Load(nil), event.Work(nil), event.Links(nil), event.Breakers(nil))
}

func TestEveryResultHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	want := []string{"applied", "refused", "duplicate", "transient", "permanent", "unknown"}
	for i, r := range event.Results {
		if r.String() != want[i] {
			t.Errorf("result %d is called %q, want %q", i, r, want[i])
		}
	}
	if got := event.Result(0).String(); got != "none" {
		t.Errorf("the zero result is called %q", got)
	}
}
