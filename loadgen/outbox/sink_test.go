package outbox_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// sink is what a generator hands arrivals to.
type sink interface {
	Offer(publish.Arrival)
	Finish()
	Run(context.Context) error
}

var _ = []sink{(*publish.Publisher)(nil), (*outbox.Sink)(nil), (*outbox.DBFirst)(nil), (*outbox.PublishFirst)(nil)}

func (s *stage) sinkConfig() outbox.Config {
	return outbox.Config{
		Pool: s.db.Pool(), Schema: s.db.Schema(), Driver: s.broker.Driver, Base: s.base, Maker: s.factory, Exchange: s.broker.Plan.Orders,
		Run: run, Writers: 8, Relays: 2, Lanes: 2, Batch: 50, Window: 100, Poll: outbox.DefaultPoll, Hold: outbox.DefaultHold,
		ShedAfter: patience, Load: s.seen, Links: event.NopLinks{}, Observer: s.seen,
	}
}

// offer hands n arrivals to a sink and runs it to its end.
func (s *stage) offer(to sink, n int64) {
	s.Helper()
	go func() {
		defer to.Finish()
		for seq := range n {
			to.Offer(publish.Arrival{Seq: seq, Scheduled: s.base.Now()})
		}
	}()
	s.runToEnd(to)
}

func (s *stage) runToEnd(of sink) {
	s.Helper()
	ended := make(chan error, 1)
	ctx := s.context()
	go func() { ended <- of.Run(ctx) }()
	select {
	case err := <-ended:
		if err != nil || ctx.Err() != nil {
			s.Fatalf("the sink ended with %v, %v", err, ctx.Err())
		}
	case <-time.After(2 * patience):
		s.Fatal("the sink did not end")
	}
}

func TestEveryArrivalGoesThroughTheOutboxWhileRelaysDie(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.sinkConfig()
	var deaths atomic.Int64
	cfg.Kill = func(outbox.Point) bool { return rand.IntN(12) == 0 && deaths.Add(1) <= 25 }
	k := outbox.New(cfg)
	const n = 2000
	s.offer(k, n)
	c := k.Counts()
	t.Logf("%d deaths, %+v", k.Kills(), c)
	if k.Kills() == 0 || c.Overlaps != 0 || c.Confirmed < n || s.unsent() != 0 || k.Unresolved() != 0 || s.seen.sheds() != 0 {
		t.Errorf("%d deaths, %+v, %d unsent, %d unresolved, %d shed", k.Kills(), c, s.unsent(), k.Unresolved(), s.seen.sheds())
	}
	state, err := s.db.OutboxState(s.context(), postgres.OutboxOrders, time.Second)
	if err != nil || state.Rows != n || state.Unsent != 0 || state.Skipped != 0 {
		t.Errorf("the outbox is %+v, %v", state, err)
	}
	found := s.lying()
	for seq := range int64(n) {
		if found[seq] == 0 || s.seen.arrived[seq] != 1 || s.seen.first[seq] != 1 || s.seen.finals[seq] < 1 {
			t.Fatalf("message %d: %d copies, %d arrivals, %d first sends, %d final outcomes", seq, found[seq],
				s.seen.arrived[seq], s.seen.first[seq], s.seen.finals[seq])
		}
	}
	if again := total(s.seen.again); again != c.Republished {
		t.Errorf("%d sends were announced as republished, %d counted", again, c.Republished)
	}
}

func total(of map[int64]int) (n int64) {
	for _, v := range of {
		n += int64(v)
	}
	return n
}

func TestASinkEndsWhenWhatIsLeftWasReturned(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.sinkConfig()
	cfg.Exchange = s.broker.Plan.DeadLetter // nothing is bound there for order.created
	s.factory.Exchange = cfg.Exchange
	k := outbox.New(cfg)
	const n = 100
	s.offer(k, n)
	if s.unsent() != n || k.Counts().Marked != 0 || len(s.seen.finals) != 0 {
		t.Errorf("%d unsent, %+v, %d final", s.unsent(), k.Counts(), len(s.seen.finals))
	}
	for seq := range int64(n) {
		outcomes := s.seen.outcomes[seq]
		if len(outcomes) == 0 || outcomes[len(outcomes)-1] != broker.Returned {
			t.Fatalf("message %d ended %v", seq, outcomes)
		}
	}
}

func TestAHardStopShedsWhatIsNotWrittenAndLeavesTheRestInTheTable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	proxy := s.broker.Proxy(t)
	cfg := s.sinkConfig()
	cfg.Driver = proxy.Driver
	proxy.Stall(true) // no relay gets through
	k := outbox.New(cfg)
	const n = 300
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	for seq := range int64(n) {
		k.Offer(publish.Arrival{Seq: seq, Scheduled: s.base.Now()})
	}
	s.await("every order is written", func() bool { return s.count(`select count(*) from orders`) == n })
	release := s.lockOrders()
	for seq := int64(n); seq < n+50; seq++ {
		k.Offer(publish.Arrival{Seq: seq, Scheduled: s.base.Now()})
	}
	s.await("the writers wait for the table", func() bool { return s.blocked() == int64(cfg.Writers) })
	cancel()
	k.Finish()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the sink ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the sink did not end")
	}
	release()
	// A writer that was stopped inside its statement cannot know what became of it.
	if got := int64(s.seen.sheds()) + k.Unresolved(); got != 50 || k.Unresolved() > int64(cfg.Writers) {
		t.Errorf("%d shed and %d unresolved, want 50 together", s.seen.sheds(), k.Unresolved())
	}
	if s.unsent() < n {
		t.Errorf("%d rows pending, want at least %d", s.unsent(), n)
	}
}

func TestLateArrivalsKeepToTheBoundOfTheCatchUp(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cfg := s.sinkConfig()
	asked := atomic.Int64{}
	cfg.CatchUp = publish.NewCatchUp(publish.Bounded, func(time.Duration) float64 { asked.Add(1); return 1e6 })
	k := outbox.New(cfg)
	s.offer(k, 50)
	if asked.Load() != 50 || s.unsent() != 0 {
		t.Errorf("the catch-up was asked %d times, %d unsent", asked.Load(), s.unsent())
	}
}
