package publish_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

// book keeps what the publisher announced, by sequence.
type book struct {
	event.NopLinks

	mu          sync.Mutex
	arrived     map[int64]int
	shed        map[int64]int
	sent        map[int64]int
	outcomes    map[int64][]broker.Outcome
	finals      map[int64]int
	again       int // sends that are marked as republished
	early       int // answers that came before their send was announced
	reconnected int
	flow        []string
}

func newBook() *book {
	return &book{
		arrived: map[int64]int{}, shed: map[int64]int{}, sent: map[int64]int{}, outcomes: map[int64][]broker.Outcome{}, finals: map[int64]int{},
	}
}

func (b *book) Arrived(e event.Arrival) { b.change(func() { b.arrived[e.Seq]++ }) }

func (b *book) Shed(seq int64, _ time.Duration) { b.change(func() { b.shed[seq]++ }) }

func (b *book) Sent(e event.Sent) {
	b.change(func() {
		b.sent[e.Seq]++
		if e.Republish {
			b.again++
		}
	})
}

func (b *book) Settled(e event.Settled) {
	b.change(func() {
		b.outcomes[e.Seq] = append(b.outcomes[e.Seq], e.Outcome)
		if len(b.outcomes[e.Seq]) > b.sent[e.Seq] {
			b.early++
		}
		if e.Final {
			b.finals[e.Seq]++
		}
	})
}

func (b *book) Reconnected(string, time.Duration) { b.change(func() { b.reconnected++ }) }

func (b *book) Blocked(role string, blocked bool, _ time.Duration) {
	b.change(func() { b.flow = append(b.flow, fmt.Sprint(role, " ", blocked)) })
}

func (b *book) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// count returns how many answers of a kind were seen.
func (b *book) count(o broker.Outcome) (n int) {
	b.change(func() {
		for _, all := range b.outcomes {
			for _, one := range all {
				if one == o {
					n++
				}
			}
		}
	})
	return n
}

func (b *book) read(f func(*book) int) (n int) {
	b.change(func() { n = f(b) })
	return n
}

// balance fails unless each of n arrivals was shed without ever being sent, or sent, with one answer for each send; and,
// after an orderly end, with a final one as the last.
func (b *book) balance(t *testing.T, n int, orderly bool) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.arrived) != n {
		t.Errorf("%d arrivals were announced, want %d", len(b.arrived), n)
	}
	republished := 0
	for seq := range b.arrived {
		sent, answers, finals := b.sent[seq], b.outcomes[seq], b.finals[seq]
		switch {
		case b.arrived[seq] != 1 || b.shed[seq] > 1 || (b.shed[seq] == 1) == (sent > 0):
			t.Errorf("message %d: arrived %d, shed %d, sent %d times", seq, b.arrived[seq], b.shed[seq], sent)
		case len(answers) != sent:
			t.Errorf("message %d: sent %d times, answers %v", seq, sent, answers)
		case sent > 0 && orderly && finals != 1:
			t.Errorf("message %d ended with answers %v, %d of them final", seq, answers, finals)
		case finals > 1:
			t.Errorf("message %d has %d final answers: %v", seq, finals, answers)
		case finals == 1 && !isFinal(answers[len(answers)-1]):
			t.Errorf("message %d: answers %v, and the last is not final", seq, answers)
		}
		republished += max(0, sent-1)
	}
	if b.early > 0 {
		t.Errorf("%d answers came before their send was announced", b.early)
	}
	if b.again != republished {
		t.Errorf("%d sends are marked as republished, want %d", b.again, republished)
	}
}

func isFinal(o broker.Outcome) bool { return o == broker.Confirmed || o == broker.Returned }

// bench is one publisher before a broker of its own.
type bench struct {
	*rabbittest.Broker
	*publish.Publisher
	t       *testing.T
	book    *book
	factory *publish.Factory
	base    *timebase.Base
	ended   chan error
	stop    context.CancelFunc
}

// start runs a publisher; change may alter its configuration.
func start(t *testing.T, b *rabbittest.Broker, change func(*publish.Config)) *bench {
	t.Helper()
	base := timebase.New()
	f := &publish.Factory{
		Base: base, Run: "run", Seed: 1, Exchange: b.Plan.Orders, Size: draw.Fixed(600), SKUs: []string{"a"}, CountMin: 1, CountMax: 3,
	}
	x := &bench{Broker: b, t: t, book: newBook(), factory: f, base: base, ended: make(chan error, 1)}
	cfg := publish.Config{
		Name: t.Name(), Driver: b.Driver, Base: base, Factory: f, Window: 100, ShedAfter: 20 * time.Second, CatchUp: publish.NewCatchUp(publish.Burst, nil),
		Observer: x.book, Links: x.book,
	}
	if change != nil {
		change(&cfg)
	}
	ctx, stop := context.WithCancel(context.Background())
	x.Publisher, x.stop = publish.New(cfg), stop
	t.Cleanup(stop)
	go func() { x.ended <- x.Run(ctx) }()
	return x
}

// offer hands in messages [from, until), due now.
func (x *bench) offer(from, until int64) {
	for seq := from; seq < until; seq++ {
		x.Offer(publish.Arrival{Seq: seq, Scheduled: x.base.Now()})
	}
}

// finish waits for the orderly end.
func (x *bench) finish() {
	x.t.Helper()
	x.Finish()
	x.await()
}

func (x *bench) await() {
	x.t.Helper()
	select {
	case err := <-x.ended:
		if err != nil {
			x.t.Errorf("Run ended with %v", err)
		}
	case <-time.After(rabbittest.Patience):
		x.t.Fatal("Run does not end")
	}
}

// copies counts the copies of each message that lie in the work queue.
func (x *bench) copies() map[int64]int {
	x.t.Helper()
	copies := map[int64]int{}
	for _, m := range x.Lying(x.t, x.Plan.Work) {
		copies[m.Seq]++
		x.checkID(m.Seq, m.MessageID)
	}
	return copies
}

// checkID fails unless an id is the one of its sequence.
func (x *bench) checkID(seq int64, id string) {
	x.t.Helper()
	if _, got, err := envelope.ParseMessageID(id); err != nil || got != seq {
		x.t.Errorf("message %d carries the id %q of %d (%v)", seq, id, got, err)
	}
}

func (x *bench) allThere(n int) (duplicates int) {
	x.t.Helper()
	copies := x.copies()
	for seq := range int64(n) {
		if copies[seq] == 0 {
			x.t.Errorf("message %d is not in the queue: it is lost", seq)
		}
		duplicates += max(0, copies[seq]-1)
	}
	return duplicates
}
