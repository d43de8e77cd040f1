package topology

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// standard returns the settings of a default profile.
func standard() Settings {
	return Settings{
		DeadLetterStrategy: AtLeastOnce,
		DeliveryLimit:      8,
		DeliveryLimitTo:    ToParking,
		ReturnVia:          ViaQueue,
		ParkVia:            ViaPublish,
		Tiers:              []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute},
		Jitter:             true,
		TimeScale:          1,
		Declare:            DeclarePolicy,
	}
}

func TestPlansMatchTheirGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Settings){
		"default": func(*Settings) {},
		"no-jitter-prefixed-scaled": func(s *Settings) {
			s.Jitter, s.Prefix, s.TimeScale = false, "run-7", 0.01
		},
		"arguments-exchange-bounded": func(s *Settings) {
			s.Declare, s.ReturnVia, s.MaxLength = DeclareArguments, ViaExchange, 1000
			s.ParkingRetention, s.DeadLetterStrategy = 24*time.Hour, AtMostOnce
		},
		"predeclared-old-broker": func(s *Settings) { s.Declare, s.BrokerMajor = DeclareNone, 3 },
		"shards":                 func(s *Settings) { s.Shards, s.Jitter, s.TimeScale = 2, false, 0.01 },
		"delayed-retry":          func(s *Settings) { s.Strategy, s.DelayedRetryType = DelayedRetry, DelayAll },
		"message-ttl":            func(s *Settings) { s.Strategy, s.TimeScale = MessageTTL, 0.01 },
		"sleep":                  func(s *Settings) { s.Strategy = Sleep },
		"requeue":                func(s *Settings) { s.Strategy = Requeue },
		"events-prefixed":        func(s *Settings) { s.Events, s.Jitter, s.Prefix = true, false, "run-7" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := standard()
			change(&s)
			plan, err := Build(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(plan, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, append(got, '\n'))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the plan differs from %s; run with -update and read the difference\n%s", path, got)
	}
}

func TestEachPolicyMatchesExactlyOneQueueAndIsComplete(t *testing.T) {
	t.Parallel()
	s := standard()
	s.Prefix, s.Events = "a.b", true
	plan, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Policies) != len(plan.Queues) {
		t.Fatalf("%d policies for %d queues", len(plan.Policies), len(plan.Queues))
	}
	names := append(plan.QueueNames(), "aXb.inventory.orders", "a.b.inventory.orders.retry.5sX1", "xa.b.inventory.orders")
	for i, p := range plan.Policies {
		pattern := regexp.MustCompile(p.Pattern)
		matched := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !pattern.MatchString(n) })
		if !slices.Equal(matched, []string{plan.Queues[i].Name}) {
			t.Errorf("policy %q matches %v", p.Name, matched)
		}
		if !maps.Equal(p.Definition, plan.Queues[i].Intended) {
			t.Errorf("policy %q sets %v, intended is %v", p.Name, p.Definition, plan.Queues[i].Intended)
		}
	}
}

func TestJitterSpreadsATierOverNeighbouringDelays(t *testing.T) {
	t.Parallel()
	s := standard()
	s.TimeScale = 0.01
	plan, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	want := []TierQueue{
		{Queue: "inventory.orders.retry.5s.1", RoutingKey: "5s.1", Delay: 40 * time.Millisecond},
		{Queue: "inventory.orders.retry.5s.2", RoutingKey: "5s.2", Delay: 50 * time.Millisecond},
		{Queue: "inventory.orders.retry.5s.3", RoutingKey: "5s.3", Delay: 60 * time.Millisecond},
	}
	if !slices.Equal(plan.Tiers[0].Queues, want) {
		t.Errorf("tier 5s has %v, want %v", plan.Tiers[0].Queues, want)
	}
	if got := plan.ShortestTier(); got != 40*time.Millisecond {
		t.Errorf("shortest tier %v, want 40ms", got)
	}
}

func TestReturnThroughTheExchangeUsesTheSharedKey(t *testing.T) {
	t.Parallel()
	s := standard()
	s.ReturnVia = ViaExchange
	plan, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Queues[1].Intended
	if got["dead-letter-exchange"] != "orders" || got["dead-letter-routing-key"] != "order.retry" {
		t.Errorf("the tier returns by %v", got)
	}
	if targets := plan.route("orders", "order.retry"); !slices.Equal(targets, []string{"inventory.orders"}) {
		t.Errorf("a returning retry reaches %v", targets)
	}
}

func TestTierNames(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		5 * time.Second:            "5s",
		5 * time.Minute:            "5m",
		90 * time.Second:           "1m30s",
		time.Hour:                  "1h",
		10 * time.Minute:           "10m",
		20 * time.Hour:             "20h",
		time.Hour + 30*time.Second: "1h0m30s",
		250 * time.Millisecond:     "250ms",
	} {
		if got := TierName(d); got != want {
			t.Errorf("TierName(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestWrongSettingsAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Build(Settings{Prefix: "a b", DeliveryLimit: -2, MaxLength: -1, ParkingRetention: time.Nanosecond, TimeScale: 1})
	if !errors.Is(err, ErrBadSettings) {
		t.Fatalf("got %v", err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	// prefix, five choices, delivery limit, length, retention, no tier
	if !ok || len(joined.Unwrap()) != 10 {
		t.Errorf("want 10 problems, got %v", err)
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Settings){
		"a delay below a millisecond after scaling": func(s *Settings) {
			s.Tiers, s.TimeScale = []time.Duration{time.Millisecond}, 0.5
		},
		"a delay below a millisecond in its shortest sub-tier": func(s *Settings) {
			s.Tiers = []time.Duration{time.Millisecond}
		},
		"a tier of no delay":              func(s *Settings) { s.Tiers = []time.Duration{0} },
		"no tier":                         func(s *Settings) { s.Tiers = nil },
		"falling tiers":                   func(s *Settings) { s.Tiers = []time.Duration{time.Minute, time.Second} },
		"the same tier twice":             func(s *Settings) { s.Tiers = []time.Duration{time.Minute, time.Minute} },
		"a delay beyond the broker's TTL": func(s *Settings) { s.Tiers = []time.Duration{1 << 62} },
		"a time scale of zero":            func(s *Settings) { s.TimeScale = 0 },
		"a time scale above one":          func(s *Settings) { s.TimeScale = 1.01 },
		"an unknown strategy":             func(s *Settings) { s.Strategy = "maybe" },
		"an unknown dead-lettering":       func(s *Settings) { s.DeadLetterStrategy = "maybe" },
		"an unknown delayed retry":        func(s *Settings) { s.Strategy, s.DelayedRetryType = DelayedRetry, "some" },
		"shards of no tier":               func(s *Settings) { s.Strategy, s.Shards = Requeue, 2 },
		"a limit to a tier that is none":  func(s *Settings) { s.Strategy, s.DeliveryLimitTo = Sleep, ToRetry },
		"an unknown way to declare":       func(s *Settings) { s.Declare = "hope" },
		"a retention beyond the broker's": func(s *Settings) { s.ParkingRetention = 1 << 62 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := standard()
			change(&s)
			if plan, err := Build(s); !errors.Is(err, ErrBadSettings) || plan != nil {
				t.Errorf("got plan %v, error %v", plan, err)
			}
		})
	}
}

func TestADeliveryLimitThatPointsIntoARetryTierIsRefused(t *testing.T) {
	t.Parallel()
	for _, declare := range []string{DeclarePolicy, DeclareArguments, DeclareNone} {
		for _, via := range []string{ViaQueue, ViaExchange} {
			s := standard()
			s.DeliveryLimitTo, s.Declare, s.ReturnVia = ToRetry, declare, via
			if _, err := Build(s); !errors.Is(err, ErrLosingCycle) {
				t.Errorf("declare %s, return via %s: got %v, want ErrLosingCycle", declare, via, err)
			}
		}
	}
}

func TestARejectionInTheCycleKeepsTheMessage(t *testing.T) {
	t.Parallel()
	s := standard()
	s.DeliveryLimitTo, s.DeliveryLimit = ToRetry, Unlimited
	plan, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.Queues[0].Intended["dead-letter-routing-key"]; got != "5s.1" {
		t.Errorf("rejected messages go to %v, want the first tier", got)
	}
}

func TestOldBrokersGetNoNegativeDeliveryLimit(t *testing.T) {
	t.Parallel()
	s := standard()
	s.BrokerMajor = 3
	plan, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range plan.Queues[1:] {
		if limit, ok := q.Intended["delivery-limit"]; ok {
			t.Errorf("queue %q has the limit %v", q.Name, limit)
		}
	}
	if got := plan.Queues[0].Intended["delivery-limit"]; got != int64(8) {
		t.Errorf("the work queue's limit is %v, want 8", got)
	}
}
