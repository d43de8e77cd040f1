package drill

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"spillway/internal/profile"
)

// Random returns the profile of a random drill, as it would be written by hand: load, workers, inbox, way of publishing, and two or
// three faults that overlap. The same seed gives the same profile. Only what promises that nothing is lost is drawn, so a loss is a
// defect, of spillway or of what it runs on.
func Random(seed uint64) profile.Source {
	d := &draws{rand.New(rand.NewPCG(seed, 0x7370696c6c776179))}
	s := d.setting()
	text := &strings.Builder{}
	fmt.Fprintf(text, `name: random
description: Drawn by spillway drill --random 1 --seed %d.
seed: %d
load: {rate: %d, duration: %ds, warmup: 1s, arrivals: %s, shed_after: 120s, skus: 200, sku_draw: {hot_share: 0.02}}
publish: {mode: %s, kill_share: %v}
inbox: {strategy: %s}
workers:
  count: %d
  processes: %d
  prefetch: %d
  concurrency: %d
  ack_batch: %d
  heartbeat: 2s
  fail: {transient: %v, permanent: %v, refused: %v}
  breaker: {enabled: %v}
retry: {attempts: 1000, unknown_attempts: 1000, tokens: {ratio: %v, over: %s}}
topology: {strategy: %s, shards: %d, return_by: %s, tiers: [5s, 30s, 5m], time_scale: 0.01, jitter: %v, delivery_limit: -1}
drain: {timeout: 90s}
faults:
`, seed, seed|1, s.rate, s.seconds, s.arrivals, s.mode, s.killShare, s.strategy, s.workers, s.processes, s.prefetch, s.concurrency, s.ackBatch,
		s.transient, s.permanent, s.refused, s.breaker, s.ratio, s.over, s.way, s.shards, s.returnBy, s.jitter)
	for _, f := range d.faults(s) {
		fmt.Fprintf(text, "  - {%s}\n", f)
	}
	fmt.Fprintln(text, "expect: {busy_machine: true, confirmed_shortage: any} # what has no route is returned, and never the broker's to keep")
	return profile.Source{Name: fmt.Sprintf("random drill, seed %d", seed), Data: []byte(text.String())}
}

// leastMessages is how many a random drill offers at least.
const leastMessages = 5000

// setting is everything but the faults.
type setting struct {
	rate, seconds                                       int
	arrivals, mode, strategy                            string
	killShare                                           float64
	workers, processes, prefetch, concurrency, ackBatch int
	transient, permanent, refused                       float64
	breaker, jitter                                     bool
	way, returnBy, over                                 string // the retry strategy, how it returns, what is over the budget
	shards                                              int
	ratio                                               float64
}

// draws are the numbers of one seed.
type draws struct{ *rand.Rand }

func pick[T any](d *draws, of ...T) T { return of[d.IntN(len(of))] }

func (d *draws) setting() setting {
	s := setting{
		rate: 300 + d.IntN(250), arrivals: pick(d, "constant", "poisson"), mode: pick(d, "direct", "direct", "outbox"),
		strategy: pick(d, "transaction", "statement", "batch"), workers: 2 + d.IntN(3), processes: pick(d, 0, 2),
		prefetch: 50 + d.IntN(150), concurrency: 8 + d.IntN(8), ackBatch: 2 + d.IntN(30),
		transient: pick(d, 0, 0.05, 0.1), permanent: pick(d, 0, 0.02), refused: pick(d, 0, 0.03),
		breaker: pick(d, true, false), jitter: pick(d, true, false),
	}
	d.wayBack(&s)
	s.seconds = max(18, leastMessages/s.rate+2)
	if s.mode == "outbox" {
		s.killShare = pick(d, 0, 0.02)
	}
	if s.strategy == "batch" { // handlers wait for their batch
		s.concurrency = s.prefetch
	}
	return s
}

// wayBack draws how what failed comes back, without a hot loop: that leaves nothing of the machine to other drawn things.
func (d *draws) wayBack(s *setting) {
	s.returnBy, s.over, s.shards = profile.ReturnByReject, profile.OverPark, 1
	s.way = pick(d, profile.StrategyTTLTiers, profile.StrategyTTLTiers, profile.StrategyMessageTTL, profile.StrategyDelayedRetry, profile.StrategySleep)
	switch s.way {
	case profile.StrategyTTLTiers:
		s.shards, s.ratio, s.over = pick(d, 1, 3), pick(d, 0, 0.2), profile.OverDefer
	case profile.StrategyDelayedRetry:
		s.returnBy = pick(d, profile.ReturnByReject, profile.ReturnByNack)
	}
}

// copies reports whether a retry is a copy, which can be lost on its way to a queue.
func (s *setting) copies() bool {
	return s.way == profile.StrategyTTLTiers || s.way == profile.StrategyMessageTTL
}

// candidate is a fault with the settings under which it can be had and is sure to be felt.
type candidate struct {
	family string // of two faults of one family the second would find the first
	words  string // besides from and for
	fits   func(setting) bool
	slow   bool // it takes seconds to be healed, in which others cannot be felt
}

func always(setting) bool { return true }

func candidates() []candidate {
	inProcess := func(s setting) bool { return s.processes == 0 }
	apart := func(s setting) bool { return s.processes > 0 }
	return []candidate{
		{family: "database", words: "kind: postgres.stop", fits: always, slow: true},
		{family: "database", words: "kind: postgres.freeze", fits: always},
		{family: "database", words: "kind: postgres.held-snapshot", fits: always},
		{family: "database", words: "kind: postgres.row-lock", fits: always},
		{family: "database", words: "kind: postgres.pool-squeeze, leave: 1", fits: func(s setting) bool { return s.processes == 0 && s.strategy != "batch" }},
		{family: "database", words: "kind: network.delay, target: database, delay: 50ms", fits: inProcess},
		{family: "database", words: "kind: network.reset, target: database", fits: inProcess},
		{family: "broker", words: "kind: broker.restart", fits: always, slow: true},
		{family: "broker", words: "kind: broker.kill", fits: always, slow: true},
		{family: "broker", words: "kind: broker.freeze", fits: always},
		{family: "broker", words: "kind: broker.memory-alarm", fits: always},
		{family: "broker", words: "kind: broker.disk-alarm", fits: always},
		{family: "broker", words: "kind: broker.close-connections, times: 2", fits: always},
		{family: "broker", words: "kind: topology.binding-removed", fits: func(s setting) bool { return s.mode == "direct" }},
		{family: "broker", words: "kind: topology.binding-removed, binding: retry", fits: func(s setting) bool { return s.transient > 0 && s.copies() }},
		{family: "broker", words: "kind: topology.parking-unavailable", fits: func(s setting) bool { return s.permanent > 0 }},
		{family: "broker", words: "kind: network.jitter, target: broker, delay: 20ms", fits: inProcess},
		{family: "broker", words: "kind: network.reset, target: broker", fits: inProcess},
		{family: "broker", words: "kind: network.bandwidth, target: broker, bandwidth: 131072", fits: inProcess},
		{family: "workers", words: "kind: workers.fail, fail: {transient: 0.5}", fits: always},
		{family: "workers", words: "kind: workers.kill, point: after-commit, times: 2", fits: apart},
		{family: "workers", words: "kind: workers.kill, point: before-commit, times: 2", fits: func(s setting) bool { return s.processes > 0 && s.strategy == "transaction" }},
		{family: "workers", words: "kind: workers.kill, point: after-retry, times: 2", fits: func(s setting) bool { return s.processes > 0 && s.transient > 0 && s.copies() }},
		{family: "workers", words: "kind: workers.freeze", fits: apart},
	}
}

// faults draws two or three of different families, the slow ones last. Each begins while the one before is under way, and goes on for
// seconds after that is over: what one has stopped, the other could not be felt on.
func (d *draws) faults(s setting) []string {
	fitting := slices.DeleteFunc(candidates(), func(c candidate) bool { return !c.fits(s) })
	d.Shuffle(len(fitting), func(i, k int) { fitting[i], fitting[k] = fitting[k], fitting[i] })
	n := 2 + d.IntN(2)
	var drawn []candidate
	for _, c := range fitting {
		known := slices.ContainsFunc(drawn, func(o candidate) bool { return o.family == c.family })
		if !known && len(drawn) < n {
			drawn = append(drawn, c)
		}
	}
	slices.SortStableFunc(drawn, func(a, b candidate) int { return cmp.Compare(slowness(a), slowness(b)) })
	var all []string
	for i, c := range drawn {
		all = append(all, fmt.Sprintf("%s, from: %.1fs, for: %.1fs", c.words, windows[i].from+d.Float64()/2, windows[i].length))
	}
	return all
}

// windows are those of the faults, in seconds. To break and to mend something may take two seconds each, and all three are to be felt:
// the second outlasts the first by more than that.
var windows = []struct{ from, length float64 }{{1, 3}, {3, 7}, {8.5, 5}}

func slowness(c candidate) int {
	if c.slow {
		return 1
	}
	return 0
}

// Coverage counts, for each kind of fault, the settings that it has met in some drills.
type Coverage struct {
	columns []string
	cells   map[string]map[string]int
}

// Cover adds a drill.
func (c *Coverage) Cover(p *profile.Profile) {
	if c.cells == nil {
		c.cells = map[string]map[string]int{}
		c.columns = []string{"direct", "outbox", "transaction", "statement", "batch", "in process", "processes", "ttl-tiers", "message-ttl", "delayed-retry", "sleep"}
	}
	workers := "in process"
	if p.Workers.Processes > 0 {
		workers = "processes"
	}
	for _, f := range p.Faults {
		row := c.cells[f.Kind]
		if row == nil {
			row = map[string]int{}
			c.cells[f.Kind] = row
		}
		for _, met := range []string{p.Publish.Mode, p.Inbox.Strategy, workers, p.Topology.Strategy} {
			row[met]++
		}
	}
}
