package drill

import (
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
load: {rate: %d, duration: %ds, warmup: 1s, arrivals: %s, shed_after: 120s, skus: 200}
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
retry: {attempts: 1000, unknown_attempts: 1000}
topology: {tiers: [5s, 30s, 5m], time_scale: 0.01, jitter: %v, delivery_limit: -1}
drain: {timeout: 90s}
faults:
`, seed, seed|1, s.rate, s.seconds, s.arrivals, s.mode, s.killShare, s.strategy, s.workers, s.processes, s.prefetch, s.concurrency, s.ackBatch,
		s.transient, s.permanent, s.refused, s.breaker, s.jitter)
	for _, f := range d.faults(s) {
		fmt.Fprintf(text, "  - {%s}\n", f)
	}
	return profile.Source{Name: fmt.Sprintf("random drill, seed %d", seed), Data: []byte(text.String())}
}

// leastMessages is how many a random drill offers at least.
const leastMessages = 5000

// setting is everything but the faults.
type setting struct {
	rate, seconds                                        int
	arrivals, mode, strategy                             string
	killShare                                            float64
	workers, processes, prefetch, concurrency, ackBatch int
	transient, permanent, refused                        float64
	breaker, jitter                                      bool
}

// draws are the numbers of one seed.
type draws struct{ *rand.Rand }

func pick[T any](d *draws, of ...T) T { return of[d.IntN(len(of))] }

func (d *draws) setting() setting {
	s := setting{
		rate: 350 + d.IntN(250), arrivals: pick(d, "constant", "poisson"), mode: pick(d, "direct", "direct", "outbox"),
		strategy: pick(d, "transaction", "statement", "batch"), workers: 2 + d.IntN(3), processes: pick(d, 0, 2),
		prefetch: 50 + d.IntN(150), concurrency: 8 + d.IntN(8), ackBatch: 2 + d.IntN(30),
		transient: pick(d, 0, 0.05, 0.1), permanent: pick(d, 0, 0.02), refused: pick(d, 0, 0.03),
		breaker: pick(d, true, false), jitter: pick(d, true, false),
	}
	s.seconds = max(14, leastMessages/s.rate+2)
	if s.mode == "outbox" {
		s.killShare = pick(d, 0, 0.02)
	}
	if s.strategy == "batch" { // handlers wait for their batch
		s.concurrency = s.prefetch
	}
	return s
}

// candidate is a fault with the settings under which it can be had and is sure to be felt.
type candidate struct {
	family string // of two faults of one family the second would find the first
	words  string // besides from and for
	fits   func(setting) bool
}

func always(setting) bool { return true }

func candidates() []candidate {
	inProcess := func(s setting) bool { return s.processes == 0 }
	apart := func(s setting) bool { return s.processes > 0 }
	return []candidate{
		{"database", "kind: postgres.stop", always},
		{"database", "kind: postgres.freeze", always},
		{"database", "kind: postgres.held-snapshot", always},
		{"database", "kind: postgres.row-lock", always},
		{"database", "kind: postgres.pool-squeeze, leave: 1", func(s setting) bool { return s.processes == 0 && s.strategy != "batch" }},
		{"database", "kind: network.delay, target: database, delay: 50ms", inProcess},
		{"database", "kind: network.reset, target: database", inProcess},
		{"broker", "kind: broker.restart", always},
		{"broker", "kind: broker.kill", always},
		{"broker", "kind: broker.freeze", always},
		{"broker", "kind: broker.memory-alarm", always},
		{"broker", "kind: broker.disk-alarm", always},
		{"broker", "kind: broker.close-connections, times: 3", always},
		{"broker", "kind: topology.binding-removed", func(s setting) bool { return s.mode == "direct" }},
		{"broker", "kind: topology.binding-removed, binding: retry", func(s setting) bool { return s.transient > 0 }},
		{"broker", "kind: topology.parking-unavailable", func(s setting) bool { return s.permanent > 0 }},
		{"broker", "kind: network.jitter, target: broker, delay: 20ms", inProcess},
		{"broker", "kind: network.reset, target: broker", inProcess},
		{"broker", "kind: network.bandwidth, target: broker, bandwidth: 131072", inProcess},
		{"workers", "kind: workers.fail, fail: {transient: 0.5}", always},
		{"workers", "kind: workers.kill, point: after-commit, times: 3", apart},
		{"workers", "kind: workers.kill, point: before-commit, times: 3", func(s setting) bool { return s.processes > 0 && s.strategy == "transaction" }},
		{"workers", "kind: workers.kill, point: after-retry, times: 3", func(s setting) bool { return s.processes > 0 && s.transient > 0 }},
		{"workers", "kind: workers.freeze", apart},
	}
}

// faults draws two or three of different families. Each begins while the one before is under way, and goes on for seconds after that is
// over: what one has stopped, the other could not be felt on.
func (d *draws) faults(s setting) []string {
	fitting := slices.DeleteFunc(candidates(), func(c candidate) bool { return !c.fits(s) })
	d.Shuffle(len(fitting), func(i, k int) { fitting[i], fitting[k] = fitting[k], fitting[i] })
	n := 2 + d.IntN(2)
	var all []string
	taken := map[string]bool{}
	from := 1.0
	for _, c := range fitting {
		if taken[c.family] || len(all) == n {
			continue
		}
		taken[c.family] = true
		length := 3 + d.Float64()
		all = append(all, fmt.Sprintf("%s, from: %.1fs, for: %.1fs", c.words, from, length))
		from += length - 1
	}
	return all
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
		c.columns = []string{"direct", "outbox", "transaction", "statement", "batch", "in process", "processes"}
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
		for _, met := range []string{p.Publish.Mode, p.Inbox.Strategy, workers} {
			row[met]++
		}
	}
}
