package loadgen

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

// tardy confirms each publish after a while, on a bubble's clock: a window of w then carries w/latency messages a second.
type tardy struct {
	obliging
	latency time.Duration
}

func (d *tardy) OpenPublisher(_ context.Context, _ string, _ int, settled func([]broker.Settlement), _ broker.Flow) (broker.Publisher, error) {
	return &tardyEpoch{epoch{driver: &d.obliging, settled: settled, done: make(chan struct{})}, d}, nil
}

type tardyEpoch struct {
	epoch
	tardy *tardy
}

func (e *tardyEpoch) Publish(_ context.Context, token uint64, m *broker.Message) error {
	e.driver.mu.Lock()
	e.driver.bodies[m.MessageID]++
	e.driver.mu.Unlock()
	time.AfterFunc(e.tardy.latency, func() {
		e.settled([]broker.Settlement{{Token: token, Outcome: broker.Confirmed, At: time.Now()}})
	})
	return nil
}

// closedBench fills windows of 10 for 10 s, of which 2 s are warm-up, from 0.5 s on.
func closedBench(d broker.Driver, publishers int) (*Closed, *sheet) {
	base := timebase.New()
	s := &sheet{arrived: map[int64]event.Arrival{}, at: map[int64]time.Duration{}, settled: map[int64]event.Settled{}, base: base}
	cfg := ClosedConfig{Base: base, Start: 500 * time.Millisecond, Warmup: 2 * time.Second, Span: 10 * time.Second}
	for range publishers {
		cfg.Fillers = append(cfg.Fillers, publish.New(publish.Config{
			Name: "p", Driver: d, Base: base, Window: 10, Observer: s, Links: s,
			Factory: &publish.Factory{Base: base, Run: "r", Exchange: "x", Size: draw.Fixed(512), SKUs: []string{"a"}, CountMin: 1, CountMax: 1},
		}))
	}
	return NewClosed(cfg), s
}

func TestAClosedLoadKeepsEveryWindowFullForItsSpan(t *testing.T) {
	t.Parallel()
	for _, publishers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			d := &tardy{obliging: obliging{bodies: map[string]int{}}, latency: 100 * time.Millisecond}
			c, s := closedBench(d, publishers)
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := publishers * 10 * 100 // windows of 10, 100 times in 10 s
			if len(s.arrived) != want || len(s.settled) != want || len(d.bodies) != want || s.shed != 0 {
				t.Fatalf("%d arrived, %d settled, %d distinct, %d shed; want %d and none shed", len(s.arrived), len(s.settled), len(d.bodies), s.shed, want)
			}
			for seq := range int64(want) {
				a, e := s.arrived[seq], s.settled[seq]
				if a.Scheduled != s.at[seq] || e.Sent != a.Scheduled || a.Warmup != (a.Scheduled < 2500*time.Millisecond) || !e.Final {
					t.Fatalf("message %d is %+v, announced at %v, settled as %+v: want it due when it was sent", seq, a, s.at[seq], e)
				}
			}
			if first, last := s.arrived[0].Scheduled, s.arrived[int64(want)-1].Scheduled; first != 500*time.Millisecond || last >= 10500*time.Millisecond {
				t.Errorf("offered from %v to %v, want 500ms to before 10.5s", first, last)
			}
		})
	}
}

func TestABrokerThatNeverAnswersCannotProlongAClosedLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := closedBench(&obliging{silent: true, bodies: map[string]int{}}, 1)
		hard, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(hard) }()
		<-c.Walked()
		if now := s.base.Now(); now != 10500*time.Millisecond {
			t.Errorf("the offering ended at %v, want 10.5s", now)
		}
		stop()
		<-ended
		if len(s.arrived) != 10 || len(s.settled) != 10 {
			t.Errorf("%d arrived, %d settled; want one window of each", len(s.arrived), len(s.settled))
		}
	})
}

func TestStopEndsAClosedLoadAndWhatWasSentIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &tardy{obliging: obliging{bodies: map[string]int{}}, latency: time.Second}
		c, s := closedBench(d, 2)
		time.AfterFunc(3250*time.Millisecond, c.Stop)
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := s.base.Now(); now != 3500*time.Millisecond || len(s.arrived) != 60 || len(s.settled) != 60 {
			t.Errorf("ended at %v with %d arrived and %d settled; want 3.5s and 60 of each", now, len(s.arrived), len(s.settled))
		}
		outcomes := map[broker.Outcome]int{}
		for _, e := range s.settled {
			outcomes[e.Outcome]++
		}
		if !slices.Equal([]int{outcomes[broker.Confirmed], len(outcomes)}, []int{60, 1}) {
			t.Errorf("outcomes %v, want all confirmed", outcomes)
		}
	})
}
