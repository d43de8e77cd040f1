package publish_test

import (
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/event"
	"spillway/internal/topology"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

func TestEveryArrivalEndsWithOneOutcome(t *testing.T) {
	t.Parallel()
	x := start(t, rabbittest.New(t, nil), nil)
	const n = 3000
	x.offer(0, n)
	x.finish()
	x.book.balance(t, n, true)
	if got := x.book.count(broker.Confirmed); got != n {
		t.Errorf("%d confirmed of %d", got, n)
	}
	if duplicates := x.allThere(n); duplicates != 0 {
		t.Errorf("%d duplicates without a fault", duplicates)
	}
}

func TestWithNothingOfferedThePublisherEnds(t *testing.T) {
	t.Parallel()
	x := start(t, rabbittest.New(t, nil), nil)
	x.finish()
	x.book.balance(t, 0, true)
}

// TestNackedMessagesAreRepublishedUntilThereIsRoom fills a queue that refuses beyond its length, and then makes room.
func TestNackedMessagesAreRepublishedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	x := start(t, rabbittest.New(t, func(s *topology.Settings) { s.MaxLength = 20 }), nil)
	const n = 300
	x.offer(0, n)
	x.Finish()
	rabbittest.Eventually(t, "messages are refused, and refused again", func() bool {
		return x.book.read(func(b *book) int { return b.again }) > n
	})
	seen := x.drainWhileRunning()
	x.book.balance(t, n, true)
	if x.book.count(broker.Nacked) == 0 || x.book.count(broker.Confirmed) != n || x.book.count(broker.Unknown) != 0 {
		t.Errorf("%d nacked, %d confirmed, %d unknown; want %d confirmed after nacks",
			x.book.count(broker.Nacked), x.book.count(broker.Confirmed), x.book.count(broker.Unknown), n)
	}
	for seq := range int64(n) {
		if seen[seq] == 0 {
			t.Errorf("message %d never came", seq)
		}
	}
}

// drainWhileRunning consumes until the publisher has ended and the queue is empty.
func (x *bench) drainWhileRunning() map[int64]int {
	x.t.Helper()
	c, err := x.Driver.OpenConsumer(rabbittest.Context(x.t), x.t.Name(), broker.ConsumerOptions{Queue: x.Plan.Work, Tag: "c", Prefetch: 50})
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = c.Close(rabbittest.Context(x.t)) }()
	seen, ended := map[int64]int{}, false
	for {
		select {
		case batch := <-c.Deliveries():
			for _, d := range batch {
				seen[d.Headers.Seq]++
				x.checkID(d.Headers.Seq, d.MessageID)
				if err := c.Ack(d.Tag, false); err != nil {
					x.t.Fatal(err)
				}
			}
		case err := <-x.ended:
			if err != nil {
				x.t.Errorf("Run ended with %v", err)
			}
			ended = true
		case <-time.After(rabbittest.Patience):
			x.t.Fatal("neither a delivery nor the end")
		}
		if ended && len(seen) == len(x.book.arrived) {
			return seen
		}
	}
}

// keepOffering offers at a steady pace until the test has seen enough, and returns how many.
func (x *bench) keepOffering(enough <-chan struct{}) (n int64) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			x.offer(n, n+3)
			n += 3
		case <-enough:
			return n
		}
	}
}

func TestConnectionsKilledUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]struct {
		times int
		cut   func(*testing.T, *rabbittest.Broker, *rabbittest.Proxy)
	}{
		"closed by the broker's management": {2, func(t *testing.T, b *rabbittest.Broker, _ *rabbittest.Proxy) { b.Kill(t) }},
		"cut on the way":                    {8, func(_ *testing.T, _ *rabbittest.Broker, p *rabbittest.Proxy) { p.Cut() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := rabbittest.New(t, nil)
			proxy := b.Proxy(t)
			x := start(t, b, func(c *publish.Config) { c.Driver = proxy.Driver })
			enough, offered := make(chan struct{}), make(chan int64, 1)
			go func() { offered <- x.keepOffering(enough) }()
			for i := range breaks.times {
				confirmed := x.book.count(broker.Confirmed)
				rabbittest.Eventually(t, "messages flow", func() bool { return x.book.count(broker.Confirmed) > confirmed+50 })
				breaks.cut(t, b, proxy)
				rabbittest.Eventually(t, "the publisher is back", func() bool {
					return x.book.read(func(b *book) int { return b.reconnected }) > i
				})
			}
			close(enough)
			n := int(<-offered)
			x.finish()
			x.book.balance(t, n, true)
			if got := x.book.count(broker.Confirmed); got != n {
				t.Errorf("%d confirmed of %d", got, n)
			}
			duplicates := x.allThere(n)
			t.Logf("%d messages, %d unknown and republished, %d arrived twice", n, x.book.count(broker.Unknown), duplicates)
			if x.book.count(broker.Unknown) == 0 {
				t.Error("no publish was unknown: the connections were not broken under load")
			}
		})
	}
}

func TestAReturnedMessageIsFinalAndNeverCountsAsConfirmed(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, nil)
	b.Tamper(t, func(ch *amqp.Channel) error { return ch.QueueUnbind(b.Plan.Work, "order.*", b.Plan.Orders, nil) })
	x := start(t, b, nil)
	const n = 500
	x.offer(0, n)
	x.finish()
	x.book.balance(t, n, true)
	if returned, confirmed := x.book.count(broker.Returned), x.book.count(broker.Confirmed); returned != n || confirmed != 0 {
		t.Errorf("%d returned, %d confirmed; want %d and none", returned, confirmed, n)
	}
	if again := x.book.read(func(b *book) int { return b.again }); again != 0 {
		t.Errorf("%d publishes of a message that has no route", again)
	}
}

func TestWhatFindsNoSlotInTimeIsShed(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, nil)
	proxy := b.Proxy(t)
	x := start(t, b, func(c *publish.Config) { c.Driver, c.Window, c.ShedAfter = proxy.Driver, 5, 50*time.Millisecond })
	x.offer(0, 5)
	rabbittest.Eventually(t, "the publisher is connected", func() bool { return x.book.count(broker.Confirmed) == 5 })
	proxy.Stall(true)
	x.offer(5, 30)
	rabbittest.Eventually(t, "20 are shed", func() bool { return x.book.read(func(b *book) int { return len(b.shed) }) == 20 })
	proxy.Stall(false)
	x.finish()
	x.book.balance(t, 30, true)
	if got := x.book.count(broker.Confirmed); got != 10 {
		t.Errorf("%d confirmed, want the 10 that found a slot", got)
	}
}

// TestAHardStopIsBoundedWhileTheSocketIsBlocked fills the socket of a broker that reads no more: the write hangs, and the
// library looks at no context there.
func TestAHardStopIsBoundedWhileTheSocketIsBlocked(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, nil)
	proxy := b.Proxy(t)
	x := start(t, b, func(c *publish.Config) { c.Driver, c.Window = proxy.Driver, 1000 })
	x.factory.Size = draw.Fixed(256 << 10)
	x.offer(0, 1)
	rabbittest.Eventually(t, "the publisher is connected", func() bool { return x.book.count(broker.Confirmed) == 1 })
	proxy.Stall(true)
	const n = 400 // 100 MB, more than any socket holds
	x.offer(1, n)
	sent := 0
	rabbittest.Eventually(t, "the publisher is stuck in a write", func() bool {
		before := sent
		sent = x.book.read(func(b *book) int { return len(b.sent) })
		time.Sleep(50 * time.Millisecond)
		return sent > 1 && sent == before && sent < n
	})
	began := time.Now()
	x.stop()
	x.finish()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the hard stop took %v", took)
	}
	x.book.balance(t, n, false)
	if shed := x.book.read(func(b *book) int { return len(b.shed) }); shed == 0 {
		t.Error("nothing was shed, so nothing waited behind the blocked write")
	}
}

// TestAHardStopWithoutABrokerIsBounded has messages wait for a connection that never comes.
func TestAHardStopWithoutABrokerIsBounded(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, nil)
	x := start(t, b, func(c *publish.Config) { c.Driver = b.Driver.WithVhost("absent") })
	const n = 50
	x.offer(0, n)
	rabbittest.Eventually(t, "the first message waits for a connection", func() bool {
		return x.book.read(func(b *book) int { return len(b.sent) }) == 1
	})
	x.stop()
	x.finish()
	x.book.balance(t, n, false)
	if got := x.book.count(broker.Confirmed) + x.book.count(broker.Nacked); got != 0 {
		t.Errorf("%d answers without a broker", got)
	}
}

func TestLateArrivalsAreCountedAndPaced(t *testing.T) {
	t.Parallel()
	catchUp := publish.NewCatchUp(publish.Bounded, func(time.Duration) float64 { return 200 })
	x := start(t, rabbittest.New(t, nil), func(c *publish.Config) { c.CatchUp = catchUp })
	const n = 100
	began := time.Now()
	for seq := range int64(n) { // all due a second ago
		x.Offer(publish.Arrival{Seq: seq, Scheduled: x.base.Now() - time.Second})
	}
	x.finish()
	if took := time.Since(began); took < 390*time.Millisecond {
		t.Errorf("%d late arrivals went out within %v, at more than 1.25 x 200/s", n, took)
	}
	if catchUp.Late() != n {
		t.Errorf("%d counted as late, want %d", catchUp.Late(), n)
	}
	x.book.balance(t, n, true)
}

func TestArrivalsAreAnnouncedWithTheirKindOfBadness(t *testing.T) {
	t.Parallel()
	kinds := make(chan string, 100)
	listen := listener{kinds: kinds}
	x := start(t, rabbittest.New(t, nil), func(c *publish.Config) {
		c.Factory.Bad = []publish.Bad{{Kind: publish.EmptyID, Share: 0.5}}
		c.Observer = listen
	})
	x.offer(0, 100)
	x.finish()
	var want []string
	for seq := range int64(100) {
		want = append(want, x.factory.BadKind(seq))
	}
	close(kinds)
	var got []string
	for kind := range kinds {
		got = append(got, kind)
	}
	if !slices.Equal(got, want) || !slices.Contains(got, publish.EmptyID) {
		t.Errorf("announced %v, want %v", got, want)
	}
	empty := 0
	for _, m := range x.Lying(t, x.Plan.Work) {
		if (m.MessageID == "") != (want[m.Seq] == publish.EmptyID) {
			t.Errorf("message %d has the id %q and is %q", m.Seq, m.MessageID, want[m.Seq])
		}
		if m.MessageID == "" {
			empty++
		}
	}
	if empty == 0 {
		t.Error("no message without an id in the queue")
	}
}

// listener hears arrivals alone.
type listener struct {
	event.NopLoad
	kinds chan<- string
}

func (l listener) Arrived(e event.Arrival) { l.kinds <- e.Bad }
