package experiment

import (
	"slices"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/ledger"
)

func TestTheTallyKnowsNumbersAndProvesNothing(t *testing.T) {
	t.Parallel()
	var c tally
	for _, e := range []event.Settled{
		{Seq: 0, Outcome: broker.Confirmed, Final: true}, {Seq: 1, Outcome: broker.Nacked}, {Seq: 1, Outcome: broker.Confirmed, Final: true},
		{Seq: 2, Outcome: broker.Returned, Final: true}, {Seq: 3, Outcome: broker.Confirmed, Final: true},
	} {
		c.Settled(e)
	}
	c.Shed(4, 0)
	c.Acked(2, 0)
	counts := c.Counts()
	if counts.Offered != 5 || counts.Publishes != 5 || counts.Republished != 1 || counts.Confirmed != 3 || counts.Acked != 2 {
		t.Errorf("counts %+v, want 5 offered, 5 publishes of which 1 again, 3 confirmed, 2 acked", counts)
	}
	if v := c.View(time.Second); v.Backlog != 1 || v.At != time.Second {
		t.Errorf("backlog %d at %v, want 1 at 1s", v.Backlog, v.At)
	}
	c.Acked(1, 0)
	if v := c.View(0); v.Backlog != 0 {
		t.Errorf("backlog %d after the last ack", v.Backlog)
	}
	a := c.Account(ledger.NewTruth(c.Span()))
	if a.Offered != 5 || a.Shed != 1 || a.Confirmed != 3 || a.NotAudited != 5 || len(a.Broken(ledger.Allowance{})) != 0 {
		t.Errorf("account %+v, want 5 offered, 1 shed, 3 confirmed, none audited", a)
	}
	if err := a.Balance(); err != nil {
		t.Error(err)
	}
	if a.Sound() == nil {
		t.Error("an account without observers is taken for sound")
	}
}

func TestThePaceCountsFirstPublishesByTheSecondOfTheirSending(t *testing.T) {
	t.Parallel()
	p := newPace(1500*time.Millisecond, 3500*time.Millisecond)
	for _, ms := range []int{1499, 1500, 2499, 2500, 4499, 4500, 9000} { // the load's half second at its end is none
		p.Sent(event.Sent{At: time.Duration(ms) * time.Millisecond})
	}
	p.Sent(event.Sent{At: 1600 * time.Millisecond, Republish: true})
	if got, want := p.until(5*time.Second), []int64{2, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("sent in each second %v, want %v", got, want)
	}
	if got := p.until(3 * time.Second); !slices.Equal(got, []int64{2}) {
		t.Errorf("of a load cut short in its second second %v, want the first alone", got)
	}
	if got := p.until(time.Second); len(got) != 0 {
		t.Errorf("of a load that never began %v", got)
	}
}
