package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/loadgen/arrival"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

// obliging is a driver that confirms at once, or never while silent; the real one has tests on a real broker, with the
// publisher. It serves the schedule alone.
type obliging struct {
	silent bool

	mu     sync.Mutex
	names  []string
	bodies map[string]int // published, by message id
}

func (o *obliging) OpenPublisher(_ context.Context, name string, _ int, settled func([]broker.Settlement), _ broker.Flow) (broker.Publisher, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names = append(o.names, name)
	return &epoch{driver: o, settled: settled, done: make(chan struct{})}, nil
}

func (o *obliging) OpenConsumer(context.Context, string, broker.ConsumerOptions) (broker.Consumer, error) {
	return nil, errors.New("the load side does not consume")
}

type epoch struct {
	driver  *obliging
	settled func([]broker.Settlement)
	mu      sync.Mutex
	open    []uint64
	once    sync.Once
	done    chan struct{}
}

func (e *epoch) Publish(_ context.Context, token uint64, m *broker.Message) error {
	e.driver.mu.Lock()
	e.driver.bodies[m.MessageID]++
	e.driver.mu.Unlock()
	if e.driver.silent {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.open = append(e.open, token)
		return nil
	}
	e.settled([]broker.Settlement{{Token: token, Outcome: broker.Confirmed, At: time.Now()}})
	return nil
}

func (e *epoch) Done() <-chan struct{} { return e.done }
func (e *epoch) Err() error            { return nil }

func (e *epoch) Close(context.Context) error {
	e.Abort()
	return nil
}

func (e *epoch) Abort() {
	e.once.Do(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, token := range e.open {
			e.settled([]broker.Settlement{{Token: token, Outcome: broker.Unknown, At: time.Now()}})
		}
		close(e.done)
	})
}

// sheet keeps what was announced.
type sheet struct {
	event.NopLinks
	mu      sync.Mutex
	arrived map[int64]event.Arrival
	at      map[int64]time.Duration
	settled map[int64]event.Settled
	shed    int
	lags    []time.Duration
	base    *timebase.Base
}

func (s *sheet) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *sheet) Arrived(e event.Arrival) {
	s.note(func() { s.arrived[e.Seq], s.at[e.Seq] = e, s.base.Now() })
}
func (s *sheet) Shed(int64, time.Duration) { s.note(func() { s.shed++ }) }
func (s *sheet) Sent(event.Sent)           {}
func (s *sheet) Settled(e event.Settled)   { s.note(func() { s.settled[e.Seq] = e }) }
func (s *sheet) Record(lag time.Duration)  { s.note(func() { s.lags = append(s.lags, lag) }) }

// bench is a generator in a bubble.
type bench struct {
	*Generator
	sheet   *sheet
	driver  *obliging
	base    *timebase.Base
	catchUp []*publish.CatchUp
}

// knobs are what a test may want otherwise.
type knobs struct {
	base       *timebase.Base
	arrivals   string
	rate       float64 // of all publishers
	publishers int
	window     int
	shedAfter  time.Duration
}

// newBench offers 100/s for 10 s, of which 2 s are warm-up, from 0.5 s on, over two publishers.
func newBench(t *testing.T, change func(*knobs)) *bench {
	t.Helper()
	k := knobs{base: timebase.New(), arrivals: arrival.Constant, rate: 100, publishers: 2, window: 50, shedAfter: time.Second}
	if change != nil {
		change(&k)
	}
	b := &bench{
		sheet:  &sheet{arrived: map[int64]event.Arrival{}, at: map[int64]time.Duration{}, settled: map[int64]event.Settled{}, base: k.base},
		driver: &obliging{bodies: map[string]int{}}, base: k.base,
	}
	shape, err := arrival.NewFlat(k.rate, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Base: k.base, Start: 500 * time.Millisecond, Warmup: 2 * time.Second, Shape: shape, Arrivals: k.arrivals, Seed: 1, Lag: b.sheet,
	}
	for range k.publishers {
		cfg.Sinks = append(cfg.Sinks, b.publisher(k))
	}
	if b.Generator, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) publisher(k knobs) *publish.Publisher {
	own := k.rate / float64(k.publishers)
	catchUp := publish.NewCatchUp(publish.Bounded, func(time.Duration) float64 { return own })
	b.catchUp = append(b.catchUp, catchUp)
	return publish.New(publish.Config{
		Name: fmt.Sprintf("spillway-producer-%d", len(b.catchUp)-1), Driver: b.driver, Base: k.base, Window: k.window, ShedAfter: k.shedAfter, CatchUp: catchUp, Observer: b.sheet, Links: b.sheet,
		Factory: &publish.Factory{
			Base: k.base, Run: "r", Exchange: "x", Size: draw.Fixed(512), SKUs: []string{"a"}, CountMin: 1, CountMax: 1,
		},
	})
}

// late returns how many arrivals were late.
func (b *bench) late() (n int64) {
	for _, c := range b.catchUp {
		n += c.Late()
	}
	return n
}

func TestEveryArrivalOfTheScheduleIsOfferedOnceAtItsInstant(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{arrival.Constant, arrival.Poisson} {
		for _, publishers := range []int{1, 2, 3} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(k *knobs) { k.arrivals, k.publishers = kind, publishers })
				if err := b.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				process, err := arrival.New(kind, 100, 10*time.Second, 1)
				if err != nil {
					t.Fatal(err)
				}
				for seq := range int64(1000) {
					due, _ := process.Next()
					due += 500 * time.Millisecond
					got := b.sheet.arrived[seq]
					if got.Scheduled != due || b.sheet.at[seq] != due || got.Warmup != (due < 2500*time.Millisecond) {
						t.Fatalf("%s over %d: message %d is %+v at %v, want it due at %v", kind, publishers, seq, got, b.sheet.at[seq], due)
					}
				}
				if len(b.sheet.arrived) != 1000 || len(b.sheet.settled) != 1000 || b.sheet.shed != 0 || len(b.driver.bodies) != 1000 || b.late() != 0 {
					t.Errorf("%d arrived, %d settled, %d shed, %d distinct, %d late; want 1000 and no more",
						len(b.sheet.arrived), len(b.sheet.settled), b.sheet.shed, len(b.driver.bodies), b.late())
				}
				if len(b.sheet.lags) != 1000 || slices.Max(b.sheet.lags) != 0 {
					t.Errorf("%d lags up to %v", len(b.sheet.lags), slices.Max(b.sheet.lags))
				}
				if len(b.driver.names) != publishers || len(slices.Compact(slices.Sorted(slices.Values(b.driver.names)))) != publishers {
					t.Errorf("connections %v, want one of its own name for each of %d publishers", b.driver.names, publishers)
				}
			})
		}
	}
}

func TestAStopEndsTheOfferingAndSettlesWhatWasOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		time.AfterFunc(2995*time.Millisecond, func() {
			b.Stop()
			b.Stop() // a second one is no harm
		})
		if err := b.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-b.Walked()
		if n := len(b.sheet.arrived); n != 250 || len(b.sheet.settled) != n {
			t.Errorf("%d arrived until the stop, %d settled; want 250 of each", n, len(b.sheet.settled))
		}
		if b.base.Now() != 2995*time.Millisecond {
			t.Errorf("the run ended at %v", b.base.Now())
		}
	})
}

func TestAStopBeforeTheRunOffersNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.Stop()
		if err := b.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(b.sheet.arrived); n != 0 {
			t.Errorf("%d arrived", n)
		}
	})
}

// TestWalkedTellsTheEndOfTheScheduleBeforeTheAnswersAreIn: the drain's clock starts with it.
func TestWalkedTellsTheEndOfTheScheduleBeforeTheAnswersAreIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(k *knobs) { k.rate, k.window = 10, 1000 })
		b.driver.silent = true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		<-b.Walked()
		if now := b.base.Now(); now != 10400*time.Millisecond {
			t.Errorf("walked at %v, want at the last arrival, 10.4s", now)
		}
		time.Sleep(time.Minute)
		if len(ended) != 0 {
			t.Fatal("Run returned with publishes unanswered")
		}
		stop() // the hard stop
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		outcomes := map[broker.Outcome]int{}
		for _, s := range b.sheet.settled {
			outcomes[s.Outcome]++
		}
		if want := map[broker.Outcome]int{broker.Unknown: 100}; !maps.Equal(outcomes, want) || b.sheet.shed != 0 {
			t.Errorf("outcomes %v, %d shed; want %v", outcomes, b.sheet.shed, want)
		}
	})
}

func TestTheHardStopShedsWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(k *knobs) { k.window, k.shedAfter = 5, time.Hour })
		b.driver.silent = true
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if err := b.Run(ctx); err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if b.base.Now() != 5*time.Second {
			t.Errorf("the run ended at %v", b.base.Now())
		}
		if n := len(b.sheet.arrived); b.sheet.shed != n-10 || len(b.sheet.settled) != 10 {
			t.Errorf("%d arrived, %d settled, %d shed; want the 10 of two windows settled and the rest shed", n, len(b.sheet.settled), b.sheet.shed)
		}
	})
}

// TestALateStartShowsInTheLagAndIsMadeUpForWithoutABurst begins 1.5 s after the first arrivals were due.
func TestALateStartShowsInTheLagAndIsMadeUpForWithoutABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(k *knobs) { k.base = timebase.At(time.Now().Add(-2 * time.Second)) })
		if err := b.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Max(b.sheet.lags); len(b.sheet.lags) != 1000 || got != 1500*time.Millisecond {
			t.Errorf("%d lags up to %v, want 1000 up to 1.5s", len(b.sheet.lags), got)
		}
		// 150 are due at once; at a quarter more than the rate they are made up for in 6 s, and 600 more are late by then.
		if late := b.late(); late < 700 || late > 760 {
			t.Errorf("%d were sent late, want about 750", late)
		}
	})
}

func TestAnUnknownKindOfArrivalsIsRefused(t *testing.T) {
	t.Parallel()
	shape, err := arrival.NewFlat(1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Arrivals: "tidal", Shape: shape}); !errors.Is(err, arrival.ErrUnknownKind) {
		t.Errorf("got %v", err)
	}
}
