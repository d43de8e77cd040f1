package profile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"spillway/internal/envelope"
)

// sound is the shortest profile without a problem. Tests append to it.
const sound = "name: a\nload: {rate: 100, duration: 20s}\n"

func parseText(t *testing.T, text string, sets ...Set) *Profile {
	t.Helper()
	p, err := Parse(Source{Name: "p.yaml", Data: []byte(text)}, sets)
	if err != nil {
		t.Fatalf("the profile has problems:\n%v", err)
	}
	return p
}

func problemsOf(t *testing.T, text string, sets ...Set) Problems {
	t.Helper()
	_, err := Parse(Source{Name: "p.yaml", Data: []byte(text)}, sets)
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatalf("the error is a %T, want Problems", err)
	}
	return problems
}

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	zero := int64(0)
	want := &Profile{
		Name: "a",
		Load: Load{Mode: "open", Rate: 100, Duration: 20 * time.Second, Arrivals: "constant", Publishers: 1, ConfirmWindow: 256,
			ShedAfter: 30 * time.Second, Size: 512, SKUs: 1000, CountMin: 1, CountMax: 5, CatchUp: "bounded",
			Sizes:   Sizes{Distribution: "fixed", Min: 480, Max: 65536, Median: 1024, Sigma: 0.5},
			SKUDraw: SKUDraw{Distribution: "uniform", Exponent: 1}},
		Publish: Publish{Mode: "direct", Outbox: Outbox{Writers: 12, Relays: 1, Lanes: 2, Batch: 512, Poll: 100 * time.Millisecond},
			Replay: Replay{After: 10 * time.Second}},
		Workers: Workers{Count: 2, Ack: AckAfterCommit, Heartbeat: 10 * time.Second, Prefetch: 50, Concurrency: 8, AckBatch: 16, AckInterval: 5 * time.Millisecond,
			HandlerTimeout: 10 * time.Second, RetryPublishTimeout: 5 * time.Second,
			Service: Service{Distribution: "fixed", Sigma: 0.5},
			Breaker: Breaker{FailureRatio: 0.5, Window: 5 * time.Second, MinSamples: 20, OpenFor: time.Second, HalfOpenProbes: 3}},
		Inbox: Inbox{Strategy: "transaction", Batch: Batch{Size: 256, Linger: time.Millisecond, Lanes: 2}, InitialStock: 1_000_000_000,
			Events:    Events{Relay: "auto", Relays: 1, Batch: 512},
			Retention: Retention{Policy: "none", Keep: 168 * time.Hour, Every: time.Minute, ReplayHorizon: 24 * time.Hour}},
		Retry: Retry{Attempts: 10, UnknownAttempts: 3, MaxAge: time.Hour, Tokens: Tokens{Floor: 10, Over: OverPark}},
		Topology: Topology{Nodes: 1, Strategy: StrategyTTLTiers, ReturnBy: ReturnByReject, DelayedRetryType: "all", Shards: 1, Isolation: "vhost", Declare: "policy", Management: "full", DeadLetterStrategy: "at-least-once",
			DeliveryLimit: 8, DeliveryLimitTo: "parking", ReturnVia: "queue", ParkVia: "publish",
			Tiers: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}, Jitter: true, TimeScale: 1},
		Drain:   Drain{Timeout: time.Minute},
		Redrive: Redrive{StopShare: 0.5},
		Expect:  Expect{Shed: &zero, Queued: &zero, ConfirmedShortage: &zero},
	}
	if got := parseText(t, sound); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", Marshal(got), Marshal(want))
	}
}

func TestDurationsAreReadAsSecondsOrGoNotation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, `"30"`: 30 * time.Second, "30s": 30 * time.Second, "1m30s": 90 * time.Second,
		"0.25": 250 * time.Millisecond, "250ms": 250 * time.Millisecond, "1e1": 10 * time.Second,
	} {
		got := parseText(t, "name: a\nload: {rate: 100, duration: "+text+"}\n").Load.Duration
		if got != want {
			t.Errorf("duration: %s is %v, want %v", text, got, want)
		}
	}
}

func TestADefaultGivesWayToTheKeyThatBoundsIt(t *testing.T) {
	t.Parallel()
	p := parseText(t, sound+"workers: {prefetch: 1}\nretry: {attempts: 2}\n", Set{Path: "load.count_min", Value: "9"})
	if p.Workers.Concurrency != 1 || p.Workers.AckBatch != 1 {
		t.Errorf("prefetch 1 leaves concurrency %d and ack_batch %d, want 1 and 1", p.Workers.Concurrency, p.Workers.AckBatch)
	}
	if p.Retry.UnknownAttempts != 2 {
		t.Errorf("attempts 2 leaves unknown_attempts %d, want 2", p.Retry.UnknownAttempts)
	}
	if p.Load.CountMax != 9 {
		t.Errorf("count_min 9 leaves count_max %d, want 9", p.Load.CountMax)
	}
}

func TestAnyLiftsAnExpectation(t *testing.T) {
	t.Parallel()
	p := parseText(t, sound+"expect: {shed: any, queued: 7, parked: 3, confirmed_shortage: any}\n")
	if p.Expect.Shed != nil || p.Expect.ConfirmedShortage != nil {
		t.Errorf("any gave %v and %v, want no check", p.Expect.Shed, p.Expect.ConfirmedShortage)
	}
	if p.Expect.Queued == nil || *p.Expect.Queued != 7 || p.Expect.Parked == nil || *p.Expect.Parked != 3 {
		t.Errorf("queued and parked are %v and %v, want 7 and 3", p.Expect.Queued, p.Expect.Parked)
	}
}

func TestAllProblemsAreReportedAtOnceInOrder(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, `name: a
loadd: {}
load:
  rate: -1
  duration: 10s
  size: 100
workers: {prefetch: 20, ack_batch: 64}
faults:
  - {kind: postgres.stop, from: 8s, for: 5s}
`, Set{Path: "load.skus", Value: "many"}).Error()
	want := strings.Join([]string{
		`p.yaml:2:1: loadd: unknown key; did you mean "load"?`,
		`p.yaml:4:9: load.rate: -1 is out of range; want 0 to 10000000 messages/s`,
		`p.yaml:6:9: load.size: 100 is out of range; want 480 to 1048576 bytes`,
		`p.yaml:7:36: workers.ack_batch: 64 is above workers.prefetch, which is 20`,
		`p.yaml:9:42: faults.0.for: the fault ends 13s into the load, after the load's end at 10s`,
		`--set load.skus=many: load.skus: "many" is not a whole number`,
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// mistakes has one row per kind of mistake: the profile, and words that its problem must hold.
var mistakes = []struct{ name, yaml, want string }{
	{"an empty file lacks what is required", "", "p.yaml:1:1: name: is required"},
	{"a list is no profile", "- a\n", "p.yaml:1:1: is a list; want keys with values"},
	{"a replay has a file", "name: a\nload: {duration: 1s, shape: [{kind: replay}]}\n", "load.shape.0.file: is required for replay"},
	{"a replay is not drawn", "name: a\nload: {duration: 1s, arrivals: poisson, shape: [{kind: replay, file: a.csv}]}\n", "load.arrivals: poisson has no meaning with a replay"},
	{"only a replay has a file", "name: a\nload: {rate: 1, duration: 1s, shape: [{kind: flat, file: a.csv}]}\n", "load.shape.0.file: has no meaning for flat"},
	{"a part that is no replay needs a rate", "name: a\nload: {duration: 1s, shape: [{kind: replay, file: a.csv}, {kind: flat}]}\n", "load.rate: is required"},
	{"rate is required", "name: a\nload: {duration: 1s}\n", "load.rate: is required"},
	{"duration is required", "name: a\nload: {rate: 1}\n", "load.duration: is required"},
	{"rate 0 offers nothing", "name: a\nload: {rate: 0, duration: 1s}\n", "load.rate: is required, above 0, unless load.mode is closed or every part of load.shape is a replay"},
	{"infinity is no rate", "name: a\nload: {rate: .inf, duration: 1s}\n", `load.rate: ".inf" is not a finite number`},
	{"not a number is no rate", "name: a\nload: {rate: NaN, duration: 1s}\n", `load.rate: "NaN" is not a finite number`},
	{"a quoted number is a text", "name: a\nload: {rate: \"5\", duration: 1s}\n", `load.rate: "5" is not a finite number`},
	{"a rate that never comes to a message", "name: a\nload: {rate: 0.1, duration: 1s}\n", "offer no message at all"},
	{"more tiers than are kept", sound + "topology: {tiers: [1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s, 10s, 11s, 12s, 13s, 14s, 15s, 16s, 17s]}\n", "topology.tiers: 17 tiers; at most 16 are possible"},
	{"a size that the distribution does not take", "name: a\nload: {rate: 100, duration: 20s, size: 600, sizes: {distribution: uniform}}\n", "load.size: does nothing here"},
	{"more messages than numbers", "name: a\nload: {rate: 10000000, duration: 720h}\n", "more messages than one run accounts for"},
	{"a missing value", sound + "seed:\n", "p.yaml:3:7: seed: is empty; want a whole number"},
	{"a fraction where whole numbers count", sound + "workers: {count: 1.5}\n", `workers.count: "1.5" is not a whole number`},
	{"a number that no integer holds", sound + "workers: {count: 99999999999999999999}\n", "workers.count: 99999999999999999999 is out of range"},
	{"prefetch 0 is 2,000 to the broker", sound + "workers: {prefetch: 0}\n", "workers.prefetch: 0 is out of range; want 1 to 65535"},
	{"prefetch beyond its two bytes", sound + "workers: {prefetch: 65536}\n", "workers.prefetch: 65536 is out of range"},
	{"concurrency above prefetch names both", sound + "workers: {prefetch: 4, concurrency: 5}\n", "workers.concurrency: 5 is above workers.prefetch, which is 4"},
	{"max below min names both", sound + "load2: 1\nworkers: {service: {distribution: uniform, min: 2s, max: 1s}}\n", "workers.service.max: 1s is below workers.service.min, which is 2s"},
	{"a confirm window of 0", "name: a\nload: {rate: 1, duration: 1s, confirm_window: 0}\n", "load.confirm_window: 0 is out of range; want 1 to 1000"},
	{"a confirm window that is costly to scan", "name: a\nload: {rate: 1, duration: 1s, confirm_window: 1001}\n", "load.confirm_window: 1001 is out of range"},
	{"a body larger than 1 MiB", "name: a\nload: {rate: 1, duration: 1s, size: 1048577}\n", "load.size: 1048577 is out of range"},
	{"a negative duration", sound + "drain: {timeout: -1s}\n", "drain.timeout: -1s is out of range"},
	{"a duration in words", sound + "drain: {timeout: soon}\n", `drain.timeout: "soon" is not a duration`},
	{"a duration that no clock holds", sound + "drain: {timeout: 1e300}\n", "drain.timeout: \"1e300\" is not a duration"},
	{"an enum value lists the choices", sound + "publish: {mode: pigeon}\n", `publish.mode: "pigeon" is not one of direct, outbox, db-first, publish-first`},
	{"a bool that is not true or false", sound + "workers: {breaker: {enabled: yes}}\n", `workers.breaker.enabled: "yes" is not true or false`},
	{"a tier of no length", sound + "topology: {tiers: [0s]}\n", "topology.tiers.0: 0s is out of range; want above 0s"},
	{"tiers that do not rise", sound + "topology: {tiers: [2s, 2s]}\n", "topology.tiers.1: 2s does not rise above the tier before it, 2s"},
	{"no tier at all", sound + "topology: {tiers: []}\n", "topology.tiers: is empty"},
	{"a tier below the broker's millisecond", sound + "topology: {tiers: [1s], time_scale: 0.001}\n", "topology.tiers.0: 1s becomes 800µs"},
	{"a time scale of 0", sound + "topology: {time_scale: 0}\n", "topology.time_scale: 0 is out of range; want above 0, at most 1"},
	{"a time scale above 1", sound + "topology: {time_scale: 1.5}\n", "topology.time_scale: 1.5 is out of range"},
	{"a delivery limit of 0", sound + "topology: {delivery_limit: 0}\n", "topology.delivery_limit: 0 would take a message away"},
	{"a cycle that loses messages", sound + "topology: {delivery_limit_to: retry}\n", "topology.delivery_limit_to: retry makes a cycle that loses messages"},
	{"policies without the management API", sound + "topology: {management: read, isolation: prefix}\n", "topology.declare: policy needs the management API"},
	{"a cluster that cannot be counted", sound + "topology: {nodes: 3, management: none, isolation: prefix, declare: arguments}\n", "topology.nodes: only the management API says"},
	{"a node to kill where there is one", sound + "faults: [{kind: broker.leader-loss, from: 1s, for: 1s}]\n", "faults.0.kind: broker.leader-loss needs a cluster; set topology.nodes to 3 or more"},
	{"a return of what is acked", sound + "topology: {strategy: requeue}\nworkers: {ack: auto}\n", "topology.strategy: requeue returns a message that failed, but with workers.ack auto"},
	{"a way to return what is copied", sound + "topology: {return_by: nack}\n", "topology.return_by: does nothing here: strategy ttl-tiers returns nothing"},
	{"a floor of no budget", sound + "retry: {tokens: {floor: 3}}\n", "retry.tokens.floor: does nothing here"},
	{"a deferral to no tier", sound + "retry: {tokens: {ratio: 0.1, over: defer}}\ntopology: {strategy: sleep}\n", "retry.tokens.over: does nothing here"},
	{"shards of no tier", sound + "topology: {strategy: sleep, shards: 4}\n", "topology.shards: does nothing here"},
	{"a fault of tiers that are not there", sound + "topology: {strategy: requeue}\nfaults: [{kind: topology.policy-removed, from: 1s, for: 1s}]\n", "faults.0.kind: topology.policy-removed is done to retry tiers"},
	{"a vhost without the management API", sound + "topology: {management: none, declare: arguments}\n", "topology.isolation: vhost needs the management API"},
	{"a fresh vhost with nothing declared", sound + "topology: {declare: none}\n", "topology.declare: none leaves isolation vhost without queues"},
	{"predeclared queues that would be changed", sound + "topology: {isolation: predeclared}\n", "topology.declare: policy would change what isolation predeclared takes as it is"},
	{"a prefix with blanks", sound + "topology: {prefix: \"a b\"}\n", `topology.prefix: "a b" does not fit`},
	{"a fault of no known kind", sound + "faults: [{kind: postgres.stpo, from: 1s, for: 1s}]\n", `did you mean "postgres.stop"?`},
	{"a fault past the load's end", sound + "faults: [{kind: postgres.stop, from: 19s, for: 2s}]\n", "faults.0.for: the fault ends 21s into the load"},
	{"a fault without a length", sound + "faults: [{kind: postgres.stop, from: 1s}]\n", "faults.0.for: is required"},
	{"a fault of shares without shares", sound + "faults: [{kind: workers.fail, from: 1s, for: 1s}]\n", "faults.0.fail: workers.fail needs shares"},
	{"shares for a fault that has none", sound + "faults: [{kind: postgres.stop, from: 1s, for: 1s, fail: {refused: 1}}]\n", "faults.0.fail: has no meaning for postgres.stop"},
	{"shares of a fault above 1", sound + "faults: [{kind: workers.fail, from: 1s, for: 1s, fail: {refused: 1, unknown: 0.5}}]\n", "faults.0.fail: the shares add up to 1.5"},
	{"two faults of a kind at once", sound + "faults: [{kind: postgres.stop, from: 1s, for: 5s}, {kind: postgres.stop, from: 5s, for: 1s}]\n", "faults.1.from: overlaps with item 0"},
	{"shares of failures above 1", sound + "workers: {fail: {transient: 0.6, permanent: 0.6}}\n", "workers.fail: the shares add up to 1.2"},
	{"a share above 1", sound + "workers: {fail: {transient: 1.5}}\n", "workers.fail.transient: 1.5 is out of range; want 0 to 1"},
	{"bad shares above 1", "name: a\nload: {rate: 1, duration: 1s, bad: [{kind: bad-json, share: 0.6}, {kind: empty-id, share: 0.6}]}\n", "load.bad: the shares add up to 1.2"},
	{"a bad kind twice", "name: a\nload: {rate: 1, duration: 1s, bad: [{kind: bad-json, share: 0.1}, {kind: bad-json, share: 0.1}]}\n", `load.bad.1.kind: "bad-json" is there already, as item 0`},
	{"a rate that is missing beside a length that is", "name: a\nload: {}\n", "load.rate: is required"},
	{"a closed load with a shape", "name: a\nload: {mode: closed, duration: 1s, shape: [{kind: ramp}]}\n", "load.shape: has no meaning with load.mode closed"},
	{"a closed load with random arrivals", "name: a\nload: {mode: closed, duration: 1s, arrivals: poisson}\n", "load.arrivals: poisson has no meaning with load.mode closed"},
	{"a closed load by way of an outbox", "name: a\nload: {mode: closed, duration: 1s}\npublish: {mode: outbox}\n", "publish.mode: outbox has no window to keep full"},
	{"an outbox without a database", sound + "inbox: {strategy: none}\npublish: {mode: outbox}\n", "publish.mode: outbox writes orders, but with inbox.strategy none"},
	{"a dual write without a database", sound + "inbox: {strategy: none}\npublish: {mode: db-first}\n", "publish.mode: db-first writes orders"},
	{"a database's fault without a database", sound + "inbox: {strategy: none}\nfaults: [{kind: postgres.stop, from: 1s, for: 1s}]\n", "faults.0.kind: postgres.stop breaks the database"},
	{"uniform without an upper end", sound + "workers: {service: {distribution: uniform}}\n", "workers.service.max: is required for the distribution uniform"},
	{"uniform with a mean", sound + "workers: {service: {distribution: uniform, max: 2s, mean: 1s}}\n", "workers.service.mean: has no meaning"},
	{"fixed with a range", sound + "workers: {service: {max: 2s}}\n", "workers.service: min and max have no meaning with the distribution fixed"},
	{"exponential without a mean", sound + "workers: {service: {distribution: exponential}}\n", "workers.service.mean: is required for the distribution exponential"},
	{"a threshold without an operator", sound + "thresholds: [messages.lost]\n", "thresholds.0: \"messages.lost\" is not a threshold"},
	{"a key in the wrong section", sound + "prefetch: 5\n", `prefetch: unknown key here; did you mean "workers.prefetch"?`},
	{"a key like no other lists the known ones", sound + "drain: {xyzzy: 5}\n", "drain.xyzzy: unknown key; the keys of drain are timeout"},
	{"a key twice", sound + "seed: 1\nseed: 2\n", "p.yaml:4:1: seed: is there twice; the first is at line 3"},
	{"a label twice", sound + "labels: {a: b, a: c}\n", "labels.a: is there twice"},
	{"a label that is a list", sound + "labels: {a: [b]}\n", "labels.a: is a list; want a text"},
	{"a section that is a list", sound + "drain: [1]\n", "p.yaml:3:8: drain: is a list; want keys with values: timeout"},
	{"a list that is a section", sound + "thresholds: {a: b}\n", "thresholds: is keys with values; want a list"},
	{"a name with a path in it", "name: ../x\nload: {rate: 1, duration: 1s}\n", `name: "../x" does not fit`},
	{"an expectation in words", sound + "expect: {shed: none}\n", `expect.shed: "none" is neither a whole number nor "any"`},
	{"a negative expectation", sound + "expect: {queued: -1}\n", "expect.queued: -1 is out of range"},
	{"a negative seed", sound + "seed: -1\n", "seed: \"-1\" is not a whole number"},
	{"an anchor", "name: &a a\n", "p.yaml:1:7: anchors and aliases are not supported"},
	{"a merge key", sound + "drain:\n  <<: x\n", "anchors and aliases are not supported"},
	{"a tag", "name: !!str a\n", "tags are not supported"},
	{"a directive", "%YAML 1.2\n---\nname: a\n", "directives are not supported"},
	{"a second document", sound + "---\nname: b\n", "p.yaml:3:1: a profile is one document"},
	{"text that is no YAML", "name: [a\n", "is not valid YAML"},
	{"bytes that are no text", "name: a\nx: \xff\n", "p.yaml:2:4: is not valid UTF-8"},
	{"a file above 1 MiB", strings.Repeat("#", maxBytes+1), "is longer than 1048576 bytes"},
	{"brackets without end", strings.Repeat("[", 1000), "is nested too deep"},
	{"dashes without end", strings.Repeat("- ", 1000), "is nested too deep"},
	{"colons without end", strings.Repeat("a: ", 1000), "is nested too deep"},
	{"keys without end", strings.Repeat("a: b\n", 50_000), "has more to it than any profile can have"},
	{"items without end", "thresholds:\n" + strings.Repeat("- x\n", 50_000), "has more to it than any profile can have"},
	{"more problems than anybody reads", sound + strings.Repeat("x: y\n", 150), "and 50 more"},
	{"a relay of events without a database", sound + "inbox: {strategy: none, events: {relay: on}}\n", "inbox.events.relay: does nothing here: inbox.strategy is none"},
	{"deaths of relays that do not run", sound + "inbox: {events: {kill_share: 0.1}}\n", "inbox.events.kill_share: does nothing here: no relay runs: inbox.events.relay is auto, and nothing in the profile can be refused"},
	{"deaths of relays that are off", sound + "workers: {fail: {refused: 0.5}}\ninbox: {events: {relay: off, kill_share: 0.1}}\n", "inbox.events.relay is off, and the profile can refuse"},
	{"an inbox that forgets what parking keeps", sound + "inbox: {retention: {policy: delete}}\n", "inbox.retention.policy: delete forgets messages that parking keeps for ever, and a redrive would apply them again; set topology.parking_retention"},
	{"an inbox that forgets too soon", sound + "topology: {parking_retention: 24h}\ninbox: {retention: {policy: delete, keep: 49h}}\n",
		"inbox.retention.keep: 49h is not above 49h, for which a message may come again: retry.max_age 1h + topology.parking_retention 24h + replay_horizon 24h"},
	{"partitions without number", sound + "topology: {parking_retention: 24h}\ninbox: {retention: {policy: partitions, every: 1s}}\n",
		"inbox.retention.every: 1s makes 604800 partitions of the 168h that are kept; at most 1000 are sensible, so 10m6s or more"},
	{"a retention without an inbox", sound + "topology: {parking_retention: 24h}\ninbox: {strategy: none, retention: {policy: delete}}\n", "inbox.retention.policy: does nothing here: inbox.strategy is none"},
	{"replays by a relay", sound + "publish: {mode: outbox, replay: {share: 0.1}}\n", "publish.replay.share: does nothing here: publish.mode is outbox, and only direct replays"},
	{"an ack before a commit that is not to be seen", sound + "inbox: {strategy: batch}\nworkers: {ack: before-commit}\n", "workers.ack: before-commit needs inbox.strategy transaction; with batch effect and COMMIT travel together"},
	{"a kill without a process", sound + "faults: [{kind: workers.kill, from: 1s, for: 1s}]\n", "faults.0.kind: workers.kill is done to a process of workers; set workers.processes to 1 or more"},
	{"a kill before a commit that is not to be seen", sound + "inbox: {strategy: statement}\nworkers: {processes: 1}\nfaults: [{kind: workers.kill, point: before-commit, from: 1s, for: 1s}]\n", "faults.0.point: before-commit needs inbox.strategy transaction"},
	{"a network that processes do not go through", sound + "workers: {processes: 1}\nfaults: [{kind: network.delay, from: 1s, for: 1s}]\n", "faults.0.kind: network.delay does not reach workers in processes of their own"},
	{"more processes than workers", sound + "workers: {count: 2, processes: 3}\n", "workers.processes: 3 is above workers.count, which is 2"},
	{"a point of another fault", sound + "faults: [{kind: postgres.stop, point: after-retry, from: 1s, for: 1s}]\n", "faults.0.point: has no meaning for postgres.stop"},
	{"indentation without end", strings.Repeat(" ", 300) + "a: b\n", "is indented too far"},
}

func TestEveryKindOfMistakeIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := problemsOf(t, c.yaml).Error(); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant it to hold\n%s", got, c.want)
			}
		})
	}
}

func TestSoundProfilesThatLookOdd(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"ten shares of a tenth add up to 1":   sound + "workers: {fail: {transient: 0.1, permanent: 0.2, refused: 0.3, unknown: 0.4}}\n",
		"an empty section takes its defaults": sound + "workers:\nlabels:\nfaults:\n",
		"a fault up to the very end":          sound + "faults: [{kind: postgres.stop, from: 5s, for: 15s}]\n",
		"two kinds of fault at once":          sound + "faults: [{kind: postgres.stop, from: 5s, for: 5s}, {kind: workers.fail, from: 5s, for: 5s, fail: {unknown: 1}}]\n",
		"the least size":                      "name: a\nload: {rate: 1, duration: 1s, size: 480}\n",
		"a document marker at the start":      "---\n" + sound,
		"a cluster that one does not own":     sound + "topology: {isolation: predeclared, declare: none, management: none}\n",
		"arguments and a prefix, no API":      sound + "topology: {isolation: prefix, declare: arguments, management: none}\n",
		"a delivery limit that is lifted":     sound + "topology: {delivery_limit: -1}\n",
		"a label that looks like a number":    sound + "labels: {build: 123}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := problemsOf(t, text); len(got) > 0 {
				t.Errorf("problems:\n%v", got)
			}
		})
	}
}

func TestTheLeastSizeIsTheEnvelopes(t *testing.T) {
	t.Parallel()
	if got := field("load.size").Range.Low; got != envelope.MinSize {
		t.Errorf("the least size is %v, want %v", got, envelope.MinSize)
	}
}

func TestFurtherChecksReportAtTheirKey(t *testing.T) {
	t.Parallel()
	check := func(p *Profile, report func(path, message string)) {
		report("thresholds.0", "names no measure: "+p.Thresholds[0])
	}
	_, err := Parse(Source{Name: "p.yaml", Data: []byte(sound + "thresholds: [a.b<1]\n")}, nil, check)
	const want = "p.yaml:3:14: thresholds.0: names no measure: a.b<1"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAProblemCannotDrawOnATerminal(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, sound+"\"a\\e[31m\": 1\n", Set{Path: "load.arrivals", Value: "\x1b[2J"}).Error()
	if strings.ContainsAny(got, "\x1b") {
		t.Errorf("an escape came through: %q", got)
	}
}

func TestAClosedLoadNeedsNoRateAndIsReadBack(t *testing.T) {
	t.Parallel()
	p := parseText(t, "name: a\nload: {mode: closed, duration: 20s}\ninbox: {strategy: none}\n")
	again := parseText(t, string(Marshal(p)))
	if !again.Load.Closed() || again.Load.Rate != 0 || again.NeedsDatabase() {
		t.Errorf("read back as mode %q at rate %v, strategy %q", again.Load.Mode, again.Load.Rate, again.Inbox.Strategy)
	}
}
