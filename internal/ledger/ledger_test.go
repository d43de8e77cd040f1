package ledger_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/ledger"
)

const ms = time.Millisecond

type bundle struct{ *ledger.Ledger }

func setup(t *testing.T) bundle {
	t.Helper()
	return bundle{ledger.New([]string{"5s", "30s"})}
}

func (b bundle) arrive(seq int64, at time.Duration) {
	b.Arrived(event.Arrival{Seq: seq, Scheduled: at})
}

func (b bundle) publish(seq int64, at time.Duration, o broker.Outcome) {
	b.Sent(event.Sent{Seq: seq, At: at})
	b.settle(seq, at, o)
}

func (b bundle) settle(seq int64, sent time.Duration, o broker.Outcome) {
	final := o == broker.Confirmed || o == broker.Returned
	b.Settled(event.Settled{Seq: seq, Sent: sent, At: sent + ms, Outcome: o, Final: final})
}

func (b bundle) confirmed(seq int64, at time.Duration) {
	b.arrive(seq, at)
	b.publish(seq, at, broker.Confirmed)
}

func (b bundle) deliver(seq int64, attempt int, at time.Duration) {
	b.Delivered(event.Delivered{Seq: seq, Attempt: attempt, At: at})
}

func (b bundle) apply(seq int64) { b.Handled(event.Handled{Seq: seq, Result: event.Applied}) }

func TestAgesFollowAMessageThroughEveryPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	look := func(at time.Duration, work, retry, unsettled, parking time.Duration) {
		t.Helper()
		v := b.View(at)
		if v.Work != work || v.Retry != retry || v.Unsettled != unsettled || v.Parking != parking {
			t.Fatalf("at %v: work %v retry %v unsettled %v parking %v, want %v %v %v %v",
				at, v.Work, v.Retry, v.Unsettled, v.Parking, work, retry, unsettled, parking)
		}
	}
	b.arrive(0, 10*ms)
	look(30*ms, 0, 0, 20*ms, 0)
	b.publish(0, 40*ms, broker.Confirmed)
	look(50*ms, 10*ms, 0, 40*ms, 0)
	b.deliver(0, 1, 60*ms)
	look(70*ms, 0, 0, 60*ms, 0)
	b.Retried(event.Retried{Seq: 0, Attempt: 1, Tier: "30s", Delay: 100 * ms, At: 80 * ms})
	look(100*ms, 0, 20*ms, 90*ms, 0)
	if v := b.View(100 * ms); v.Tiers["30s"] != 20*ms || v.Tiers["5s"] != 0 || v.RetryDebt != 1 || v.InTier["30s"] != 1 {
		t.Fatalf("tiers %v, debt %d, in tier %v", v.Tiers, v.RetryDebt, v.InTier)
	}
	look(200*ms, 20*ms, 0, 190*ms, 0) // its tier let it go at 180 ms
	b.deliver(0, 2, 210*ms)
	look(220*ms, 0, 0, 210*ms, 0)
	b.Released(0, 230*ms)
	look(240*ms, 60*ms, 0, 230*ms, 0) // back in the work queue, where it has been since 180 ms
	b.deliver(0, 2, 250*ms)
	b.Parked(event.Parked{Seq: 0, At: 260 * ms})
	look(300*ms, 0, 0, 0, 40*ms)
}

func TestTheOldestOfManyIsFoundAcrossPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for seq := range int64(20_000) {
		b.confirmed(seq, time.Duration(seq)*ms)
	}
	for seq := range int64(20_000) {
		if seq != 9_001 && seq != 15_000 {
			b.apply(seq)
		}
	}
	if v := b.View(20_000 * ms); v.Work != 10_999*ms || v.Backlog != 2 {
		t.Fatalf("work age %v backlog %d, want 10.999s and 2", v.Work, v.Backlog)
	}
	b.apply(9_001)
	if v := b.View(20_000 * ms); v.Work != 5_000*ms || v.Backlog != 1 {
		t.Fatalf("work age %v backlog %d, want 5s and 1", v.Work, v.Backlog)
	}
}

func TestADeliveryMayBeSeenBeforeItsConfirm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.arrive(0, 0)
	b.Sent(event.Sent{Seq: 0, At: ms})
	b.deliver(0, 1, 2*ms)
	b.apply(0)
	b.settle(0, ms, broker.Confirmed)
	if v := b.View(time.Second); v.Unsettled != 0 || v.Work != 0 || v.Pending != 0 {
		t.Fatalf("a settled message is still seen: %+v", v)
	}
}

func TestACopyDeliveredBeforeItsRetryWasToldStaysDelivered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.confirmed(0, 0)
	b.deliver(0, 1, ms)
	b.deliver(0, 2, 5*ms)
	b.Retried(event.Retried{Seq: 0, Attempt: 1, Tier: "5s", Delay: 2 * ms, At: 4 * ms})
	if v := b.View(6 * ms); v.RetryDebt != 0 || v.Held != 1 {
		t.Fatalf("debt %d held %d, want 0 and 1", v.RetryDebt, v.Held)
	}
}

func TestRetriesPerMessageAreCountedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for seq, attempts := range []int{1, 3, 3, 200} {
		b.confirmed(int64(seq), 0)
		for a := range attempts {
			b.deliver(int64(seq), a+1, ms)
		}
		b.apply(int64(seq))
		b.Handled(event.Handled{Seq: int64(seq), Result: event.Duplicate})
	}
	got := b.Counts().RetriesPerMessage
	if got[0] != 1 || got[2] != 2 || got[64] != 1 || len(got) != 3 {
		t.Fatalf("retries per message %v, want 0:1 2:2 64:1", got)
	}
}

func TestEventsOfForeignMessagesChangeNoRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.deliver(-1, 1, 0)
	b.deliver(1<<60, 1, 0)
	b.Parked(event.Parked{Seq: -1, At: 0})
	if c := b.Counts(); c.Delivered != 2 || c.Parked != 1 || c.Distinct != 0 {
		t.Fatalf("counts %+v", c)
	}
	if b.Span() != 0 {
		t.Fatalf("span %d, want 0", b.Span())
	}
}

// TestTheAccountConservesUnderAnyInterleaving drives random messages through random fates from several goroutines, and
// expects every one of them back in the account, in the place where the truth says it is.
func TestTheAccountConservesUnderAnyInterleaving(t *testing.T) {
	t.Parallel()
	const messages, goroutines = 12_000, 4
	b := setup(t)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(g)))
			for seq := int64(g); seq < messages; seq += goroutines {
				b.live(seq, r)
			}
		})
	}
	group.Wait()
	truth := ledger.NewTruth(b.Span())
	want := map[string]int64{}
	for seq := range int64(messages) {
		want[tell(truth, seq)]++
	}
	a := b.Account(truth)
	if err := a.Sound(); err != nil {
		t.Fatal(err)
	}
	if a.Offered != messages || a.Applied != want["applied"] || a.Refused != want["refused"] || a.Parked != want["parked"] ||
		a.Queued != want["queued"] || a.Expired != want["expired"] {
		t.Fatalf("account %+v, want %v", a, want)
	}
	if a.Lost+a.NeverSent != want["nowhere"] {
		t.Fatalf("lost %d + never sent %d, want %d together", a.Lost, a.NeverSent, want["nowhere"])
	}
}

// live gives one message a random life as the events would tell it.
func (b bundle) live(seq int64, r *rand.Rand) {
	b.arrive(seq, 0)
	if r.IntN(10) == 0 {
		b.Shed(seq, ms)
		return
	}
	b.publish(seq, 0, broker.Outcome(1+r.IntN(4)))
	for r.IntN(3) == 0 {
		b.Sent(event.Sent{Seq: seq, Republish: true})
		b.settle(seq, 0, broker.Confirmed)
	}
	for attempt := 1; r.IntN(2) == 0; attempt++ {
		b.deliver(seq, attempt, 0)
		b.Retried(event.Retried{Seq: seq, Attempt: attempt, Tier: "5s"})
	}
	switch r.IntN(3) {
	case 0:
		b.apply(seq)
	case 1:
		b.Parked(event.Parked{Seq: seq})
	}
}

// tell puts a message where its sequence says, and names the fate that the account must give it.
func tell(t *ledger.Truth, seq int64) string {
	switch seq % 6 {
	case 0:
		t.Claimed(seq)
		t.Effects(seq, 1, 0)
		return "applied"
	case 1:
		t.Claimed(seq)
		t.Effects(seq, 0, 1)
		return "refused"
	case 2:
		t.Lying(seq, ledger.InParking)
		return "parked"
	case 3:
		t.Lying(seq, ledger.InTier)
		return "queued"
	case 4:
		t.Expirable(seq)
		return "expired"
	default:
		return "nowhere"
	}
}

func TestBrokenGuaranteesAreNamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		tell func(*ledger.Truth)
		want error
	}{
		{"a confirmed message that is nowhere is lost", func(*ledger.Truth) {}, ledger.ErrLost},
		{"two rows in the effect log are a duplicate effect", func(tr *ledger.Truth) {
			tr.Claimed(0)
			tr.Effects(0, 2, 0)
		}, ledger.ErrDuplicateEffects},
		{"an effect and a refusal of one message are a duplicate effect", func(tr *ledger.Truth) {
			tr.Claimed(0)
			tr.Effects(0, 1, 1)
		}, ledger.ErrDuplicateEffects},
		{"a claim without an effect is a missing effect, wherever the message lies", func(tr *ledger.Truth) {
			tr.Claimed(0)
			tr.Lying(0, ledger.InWork)
		}, ledger.ErrMissingEffects},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.confirmed(0, 0)
			truth := ledger.NewTruth(b.Span())
			tt.tell(truth)
			a := b.Account(truth)
			broken := a.Broken(ledger.Allowance{})
			if len(broken) != 1 || !errors.Is(broken[0], tt.want) {
				t.Fatalf("broken %v, want %v", broken, tt.want)
			}
			if allowed := a.Broken(ledger.Allowance{Lost: 1, DuplicateEffects: 1, MissingEffects: 1}); allowed != nil {
				t.Fatalf("declared, yet reported: %v", allowed)
			}
		})
	}
}

func TestWhatWasNeverConfirmedCannotBeLost(t *testing.T) {
	t.Parallel()
	for _, o := range []broker.Outcome{broker.Returned, broker.Nacked, broker.Unknown} {
		b := setup(t)
		b.arrive(0, 0)
		b.publish(0, 0, o)
		a := b.Account(ledger.NewTruth(b.Span()))
		if a.Lost != 0 || a.NeverSent != 1 || a.Confirmed != 0 {
			t.Errorf("%v: lost %d, never sent %d", o, a.Lost, a.NeverSent)
		}
	}
}

func TestAMessageInTwoPlacesIsAnOverlapWithTheFirstFate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.confirmed(0, 0)
	truth := ledger.NewTruth(b.Span())
	truth.Claimed(0)
	truth.Effects(0, 1, 0)
	truth.Lying(0, ledger.InParking)
	a := b.Account(truth)
	if a.Applied != 1 || a.Parked != 0 || a.Overlaps != 1 || len(a.Broken(ledger.Allowance{})) != 0 {
		t.Fatalf("account %+v", a)
	}
}

func TestWhatTheBrokerHoldsForARefusingTargetIsNotLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for seq := range int64(3) {
		b.confirmed(seq, 0)
	}
	a := b.Account(ledger.NewTruth(b.Span()))
	a.HeldByBroker(2)
	if a.Lost != 1 || a.Queued != 2 {
		t.Fatalf("lost %d queued %d, want 1 and 2", a.Lost, a.Queued)
	}
	a.HeldByBroker(5)
	if a.Lost != 0 || a.Queued != 3 || a.Balance() != nil {
		t.Fatalf("lost %d queued %d, balance %v; want 0, 3 and none", a.Lost, a.Queued, a.Balance())
	}
}

func TestAPlaceThatWasNotReadIsNeverSound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.confirmed(0, 0)
	truth := ledger.NewTruth(b.Span())
	truth.Effects(0, 1, 0)
	truth.Unaudited("the parking lot")
	a := b.Account(truth)
	if err := a.Sound(); !errors.Is(err, ledger.ErrUnaudited) {
		t.Fatalf("sound: %v, want ErrUnaudited", err)
	}
}

// Where a place could not be read, a message or an effect that was not found may lie there.
func TestAbsenceProvesNothingWhereAPlaceWasNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for seq := range int64(3) {
		b.confirmed(seq, 0)
	}
	truth := ledger.NewTruth(b.Span())
	truth.Claimed(1) // and no effect seen; 0 was seen nowhere
	truth.Effects(2, 2, 0)
	truth.UnreadDatabase("it was away")
	a := b.Account(truth)
	if broken := a.Broken(ledger.Allowance{}); len(broken) != 1 || !errors.Is(broken[0], ledger.ErrDuplicateEffects) {
		t.Fatalf("broken %v, want the duplicate effect alone", broken)
	}
}

// Claims and effects were read, so a claim without its effect is proved whatever else was not.
func TestAMissingEffectIsProvedAlsoWhereTheQueuesWereNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.confirmed(0, 0)
	truth := ledger.NewTruth(b.Span())
	truth.Claimed(0)
	truth.Unaudited("the queues")
	a := b.Account(truth)
	if broken := a.Broken(ledger.Allowance{}); len(broken) != 1 || !errors.Is(broken[0], ledger.ErrMissingEffects) || a.NotAudited != 1 {
		t.Fatalf("broken %v, %d not audited; want the missing effect, and 1", broken, a.NotAudited)
	}
}

func TestAnAccountThatDoesNotAddUpSaysSo(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]ledger.Account{
		"outcomes":  {Offered: 2, Confirmed: 1, Applied: 2, Publishes: 2},
		"fates":     {Offered: 2, Confirmed: 2, Applied: 1, Publishes: 2},
		"publishes": {Offered: 2, Confirmed: 2, Applied: 2, Publishes: 5, Republished: 1},
	} {
		if err := a.Balance(); !errors.Is(err, ledger.ErrUnbalanced) {
			t.Errorf("%s: %v, want ErrUnbalanced", name, err)
		}
	}
}

func TestThingsFoundThatWereNeverOfferedAreForeign(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.confirmed(0, 0)
	truth := ledger.NewTruth(b.Span())
	truth.Effects(0, 1, 0)
	truth.Effects(5, 1, 0)
	truth.Effects(-1, 1, 0)
	truth.Claimed(1 << 40)
	a := b.Account(truth)
	if a.Foreign != 3 || a.Offered != 1 || a.Applied != 1 {
		t.Fatalf("account %+v, want 3 foreign", a)
	}
}

// TestSettledPagesShrink holds the bound on memory: a page of settled messages keeps one byte for each, and one in all when
// they ended alike. The last page has one that did not.
func TestSettledPagesShrink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const messages = 1 << 16
	for seq := range int64(messages - 1) {
		b.confirmed(seq, 0)
		b.apply(seq)
	}
	b.arrive(messages-1, 0)
	b.Shed(messages-1, 0)
	if kept, want := b.KeptBytes(), messages/ledger.PageMessages-1+ledger.PageMessages; kept != want {
		t.Errorf("%d bytes are kept, want one for each page and %d for the last", kept, ledger.PageMessages)
	}
	if live := b.LivePages(); live != 0 {
		t.Fatalf("%d pages still hold records of settled messages", live)
	}
	a := b.Account(func() *ledger.Truth {
		truth := ledger.NewTruth(b.Span())
		for seq := range int64(messages - 1) {
			truth.Effects(seq, 1, 0)
		}
		return truth
	}())
	if a.Confirmed != messages-1 || a.Applied != messages-1 || a.Shed != 1 {
		t.Fatalf("compaction changed the account: %+v", a)
	}
}

func BenchmarkOneMessage(b *testing.B) {
	l := bundle{ledger.New([]string{"5s"})}
	b.ReportAllocs()
	seq := int64(0)
	for b.Loop() {
		l.confirmed(seq, 0)
		l.deliver(seq, 1, 0)
		l.apply(seq)
		l.Acked(1, 0)
		seq++
	}
}

func BenchmarkViewOfABacklog(b *testing.B) {
	l := bundle{ledger.New([]string{"5s"})}
	for seq := range int64(100_000) {
		l.confirmed(seq, 0)
	}
	for b.Loop() {
		l.View(time.Second)
	}
}
