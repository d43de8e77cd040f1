package rabbit

import (
	"errors"
	"sync"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/topology"
)

// book records settlements and stands in for a producer's window.
type book struct {
	mu       sync.Mutex
	outcomes map[uint64][]broker.Outcome
	total    map[broker.Outcome]int
	first    map[broker.Outcome]broker.Settlement
}

func newBook() *book {
	return &book{
		outcomes: make(map[uint64][]broker.Outcome),
		total:    make(map[broker.Outcome]int),
		first:    make(map[broker.Outcome]broker.Settlement),
	}
}

func (b *book) settled(batch []broker.Settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range batch {
		b.outcomes[s.Token] = append(b.outcomes[s.Token], s.Outcome)
		if b.total[s.Outcome]++; b.total[s.Outcome] == 1 {
			b.first[s.Outcome] = s
		}
	}
}

func (b *book) count(o broker.Outcome) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total[o]
}

func (b *book) all() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.outcomes)
}

// check fails when a token has not exactly one settlement.
func (b *book) check(t *testing.T, published int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.outcomes) != published {
		t.Errorf("%d of %d publishes settled", len(b.outcomes), published)
	}
	for token, outcomes := range b.outcomes {
		if len(outcomes) != 1 {
			t.Errorf("publish %d settled as %v", token, outcomes)
		}
	}
}

func openPublisher(t *testing.T, d *Driver, window int, settled func([]broker.Settlement), flow broker.Flow) broker.Publisher {
	t.Helper()
	p, err := d.OpenPublisher(deadline(t), t.Name(), window, settled, flow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Abort()
		<-p.Done()
	})
	return p
}

func declared(t *testing.T, b *bundle, change func(*topology.Settings)) *topology.Plan {
	t.Helper()
	plan := b.plan(t, change)
	admin := NewAdmin(b.driver)
	t.Cleanup(admin.Close)
	if err := admin.Declare(deadline(t), plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestReturnedWinsOverConfirmedForEveryOneOfThousands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	got := newBook()
	p := openPublisher(t, b.driver, 200, got.settled, nil)
	const n = 6000
	for i := range uint64(n) {
		key := "order.created"
		if i%3 == 0 {
			key = "nobody.listens"
		}
		if err := p.Publish(t.Context(), i, message(plan.Orders, key, int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every publish settles", func() bool { return got.all() == n })
	got.check(t, n)
	for token, outcomes := range got.outcomes {
		want := broker.Confirmed
		if token%3 == 0 {
			want = broker.Returned
		}
		if outcomes[0] != want {
			t.Fatalf("publish %d settled as %v, want %v", token, outcomes[0], want)
		}
	}
	if reason := got.first[broker.Returned].Reason; reason != "312 NO_ROUTE" {
		t.Errorf("the reason of a return is %q", reason)
	}
	if err := p.Close(deadline(t)); err != nil || p.Err() != nil {
		t.Errorf("close: %v, then Err is %v", err, p.Err())
	}
}

func TestBadMessagesWithoutAnIDAreMatchedToTheirReturns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	got := newBook()
	p := openPublisher(t, b.driver, 50, got.settled, nil)
	for i := range uint64(100) {
		key := "order.created"
		if i%2 == 0 {
			key = "nobody"
		}
		m := message(plan.Orders, key, int64(i))
		m.MessageID = ""
		if err := p.Publish(t.Context(), i, m); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every publish settles", func() bool { return got.all() == 100 })
	got.check(t, 100)
	if got.count(broker.Returned) != 50 || got.count(broker.Confirmed) != 50 {
		t.Errorf("settled as %v", got.total)
	}
}

func TestAFullQueueNacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, func(s *topology.Settings) { s.MaxLength = 10 })
	got := newBook()
	p := openPublisher(t, b.driver, 1, got.settled, nil) // one at a time, so that the limit is seen
	const n = 60
	for i := range uint64(n) {
		if err := p.Publish(t.Context(), i, message(plan.Orders, "order.created", int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every publish settles", func() bool { return got.all() == n })
	got.check(t, n)
	if got.count(broker.Confirmed) < 10 || got.count(broker.Nacked) == 0 || got.count(broker.Confirmed)+got.count(broker.Nacked) != n {
		t.Errorf("settled as %v, want at least 10 confirmed and the rest nacked", got.total)
	}
}

func TestALostConnectionLeavesUnknownsAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	got := newBook()
	p := openPublisher(t, b.driver, 500, got.settled, nil)
	var published uint64
	ctx := deadline(t)
	seen := make(chan struct{}) // the API knows the connection, and is about to close it
	go func() {
		for known := 0; known == 0 && ctx.Err() == nil; {
			time.Sleep(50 * time.Millisecond)
			known, _ = b.management.Connections(ctx, b.vhost)
		}
		close(seen)
		if n, err := b.management.CloseConnections(ctx, b.vhost); n == 0 {
			t.Errorf("%d connections were closed (%v)", n, err)
			p.Abort()
		}
	}()
	for ; ; published++ {
		select {
		case <-seen: // at full speed, so that some are in flight at any moment
		default:
			time.Sleep(time.Millisecond)
		}
		if err := p.Publish(t.Context(), published, message(plan.Orders, "order.created", int64(published))); err != nil {
			if !errors.Is(err, broker.ErrClosed) {
				t.Errorf("publish after the end: %v", err)
			}
			break
		}
	}
	<-p.Done()
	got.check(t, int(published))
	if n := got.count(broker.Nacked) + got.count(broker.Returned); n != 0 || got.count(broker.Unknown) == 0 {
		t.Errorf("settled as %v, want unknowns and confirms alone", got.total)
	}
	if !errors.Is(p.Err(), broker.ErrClosed) {
		t.Errorf("Err is %v", p.Err())
	}
}

func TestAbortUnderLoadSettlesEveryPublishOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	for range 20 {
		got := newBook()
		p := openPublisher(t, b.driver, 300, got.settled, nil)
		var published uint64
		go func() {
			for got.count(broker.Confirmed) < 50 {
				time.Sleep(100 * time.Microsecond)
			}
			p.Abort()
		}()
		for p.Publish(t.Context(), published, message(plan.Orders, "order.created", int64(published))) == nil {
			published++
		}
		<-p.Done()
		got.check(t, int(published))
		if n := got.count(broker.Nacked); n != 0 {
			t.Errorf("%d publishes were called nacked: the channel's end was taken for an answer", n)
		}
		if !errors.Is(p.Err(), broker.ErrClosed) {
			t.Errorf("Err is %v", p.Err())
		}
	}
}

func TestAnExchangeThatDoesNotExistEndsTheEpoch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := newBook()
	p := openPublisher(t, b.driver, 10, got.settled, nil)
	if err := p.Publish(t.Context(), 1, message("missing", "k", 1)); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	got.check(t, 1)
	if got.count(broker.Unknown) != 1 {
		t.Errorf("settled as %v", got.total)
	}
	if reason := got.first[broker.Unknown].Reason; reason == "" {
		t.Error("the cause is not named")
	}
	if err := p.Publish(t.Context(), 2, message("missing", "k", 2)); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("publish after the end: %v", err)
	}
}

func TestASettledCallbackThatStallsLosesNoReturn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	got := newBook()
	release := make(chan struct{})
	const n = 300
	p := openPublisher(t, b.driver, n, func(s []broker.Settlement) {
		<-release
		got.settled(s)
	}, nil)
	for i := range uint64(n) {
		if err := p.Publish(t.Context(), i, message(plan.Orders, "nobody", int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	// Longer than the 5 s after which the library drops a notification that finds its channel full.
	time.Sleep(6 * time.Second)
	close(release)
	eventually(t, "every publish settles", func() bool { return got.all() == n })
	got.check(t, n)
	if got.count(broker.Returned) != n {
		t.Errorf("settled as %v, want %d returned", got.total, n)
	}
}

func TestAWindowOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	d, err := New(Config{URIs: []string{"amqp://localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range []int{0, -1, 65536} {
		if _, err := d.OpenPublisher(t.Context(), "x", window, nil, nil); err == nil {
			t.Errorf("a window of %d was taken", window)
		}
	}
}
