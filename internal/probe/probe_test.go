package probe_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"spillway/internal/ledger"
	"spillway/internal/probe"
	"spillway/internal/timebase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// ear remembers what the probe told.
type ear struct {
	mu     sync.Mutex
	views  []time.Duration
	depths []probe.Depths
}

func (e *ear) Viewed(v ledger.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.views = append(e.views, v.At)
}

func (e *ear) Measured(d probe.Depths) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.depths = append(e.depths, d)
}

func view(now time.Duration) ledger.View { return ledger.View{At: now} }

// run samples for a while on the bubble's clock.
func run(t *testing.T, span time.Duration, cfg probe.Config) (*ear, *probe.Ages) {
	t.Helper()
	heard := &ear{}
	cfg.Base, cfg.Listen = timebase.New(), heard
	p := probe.New(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	p.Run(ctx)
	return heard, p.Ages()
}

func TestTenViewsASecondAndDepthsOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		heard, ages := run(t, 5050*ms, probe.Config{View: view, Depths: func(context.Context) (map[string]int, error) {
			asked++
			return map[string]int{"work": asked}, nil
		}})
		if len(heard.views) != 50 || heard.views[0] != 100*ms || heard.views[49] != 5*time.Second {
			t.Errorf("%d views in 5 s: %v", len(heard.views), heard.views)
		}
		if n := ages.Unsettled().Samples; n != 50 {
			t.Errorf("%d samples of ages, want 50", n)
		}
		if len(heard.depths) != 5 {
			t.Fatalf("%d depths in 5 s", len(heard.depths))
		}
		for i, d := range heard.depths {
			if d.At != time.Duration(i+1)*time.Second || d.Ready["work"] != i+1 {
				t.Errorf("depth %d is %+v", i, d)
			}
		}
	})
}

func TestADepthThatFailsLeavesAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		heard, _ := run(t, 4500*ms, probe.Config{View: view, Depths: func(context.Context) (map[string]int, error) {
			if asked++; asked == 2 {
				return map[string]int{"work": 99}, errors.New("the broker is away")
			}
			return map[string]int{"work": asked}, nil
		}})
		var at []time.Duration
		for _, d := range heard.depths {
			at = append(at, d.At)
		}
		if want := []time.Duration{time.Second, 3 * time.Second, 4 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("depths at %v, want a gap at 2s: %v", at, want)
		}
	})
}

func TestADepthThatHangsIsBoundedAndHoldsUpNoView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		heard, _ := run(t, 6050*ms, probe.Config{View: view, Depths: func(ctx context.Context) (map[string]int, error) {
			if asked++; asked == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		}})
		if len(heard.views) != 60 {
			t.Errorf("%d views in 6 s beside a depth that hangs, want 60", len(heard.views))
		}
		// The first is asked at 1 s and given up at 3 s; the tick that came meanwhile is served at once.
		if len(heard.depths) == 0 || heard.depths[0].At != 3*time.Second || asked != 5 {
			t.Errorf("asked %d times, depths %v; want the rounds to go on at 3 s", asked, heard.depths)
		}
	})
}

func TestAHangingDepthEndsWithTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		run(t, 1500*ms, probe.Config{View: view, Depths: func(ctx context.Context) (map[string]int, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		if took := time.Since(began); took != 1500*ms {
			t.Errorf("it took %v, want 1.5s", took)
		}
	})
}

func TestWithoutDepthsTheViewsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heard, _ := run(t, 1050*ms, probe.Config{View: view})
		if len(heard.views) != 10 || len(heard.depths) != 0 {
			t.Errorf("%d views, %d depths; want 10 and none", len(heard.views), len(heard.depths))
		}
	})
}

func TestEachPlaceHasItsOwnAges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, ages := run(t, 150*ms, probe.Config{View: func(now time.Duration) ledger.View {
			return ledger.View{
				At: now, Work: 1, Retry: 2, Parking: 3, Unsettled: 4, Tiers: map[string]time.Duration{"5s": 5, "30s": 6},
			}
		}})
		all := func(d time.Duration) probe.Age { return probe.Age{P50: d, P99: d, Max: d, End: d, Samples: 1} }
		if ages.Work() != all(1) || ages.Retry() != all(2) || ages.Parking() != all(3) || ages.Unsettled() != all(4) {
			t.Errorf("work %v, retry %v, parking %v, unsettled %v", ages.Work(), ages.Retry(), ages.Parking(), ages.Unsettled())
		}
		if tiers := ages.Tiers(); len(tiers) != 2 || tiers["5s"] != all(5) || tiers["30s"] != all(6) {
			t.Errorf("tiers %v", tiers)
		}
	})
}

func TestQuantilesOfAgesAreExact(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		samples []time.Duration
		want    probe.Age
	}{
		"none":                       {nil, probe.Age{}},
		"one":                        {[]time.Duration{7}, probe.Age{P50: 7, P99: 7, Max: 7, End: 7, Samples: 1}},
		"two":                        {[]time.Duration{9, 3}, probe.Age{P50: 3, P99: 9, Max: 9, End: 3, Samples: 2}},
		"three, out of order":        {[]time.Duration{5, 9, 1}, probe.Age{P50: 5, P99: 9, Max: 9, End: 1, Samples: 3}},
		"a hundred":                  {falling(100), probe.Age{P50: 50, P99: 99, Max: 100, End: 1, Samples: 100}},
		"a hundred and one":          {falling(101), probe.Age{P50: 51, P99: 100, Max: 101, End: 1, Samples: 101}},
		"two hundred":                {falling(200), probe.Age{P50: 100, P99: 198, Max: 200, End: 1, Samples: 200}},
		"ten: the p99 is the oldest": {falling(10), probe.Age{P50: 5, P99: 10, Max: 10, End: 1, Samples: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				i := -1
				_, ages := run(t, time.Duration(len(row.samples))*100*ms+50*ms, probe.Config{View: func(time.Duration) ledger.View {
					i++
					return ledger.View{Work: row.samples[i]}
				}})
				if got := ages.Work(); got != row.want {
					t.Errorf("got %+v, want %+v", got, row.want)
				}
				if got := ages.Work(); got != row.want { // reading must not reorder the samples
					t.Errorf("the second reading is %+v", got)
				}
			})
		})
	}
}

// falling returns n, n-1 ... 1.
func falling(n int) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = time.Duration(n - i)
	}
	return out
}
