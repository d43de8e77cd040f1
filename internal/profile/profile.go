// Package profile is the description of one experiment: what to offer, who works on it, through which topology, what
// breaks meanwhile, and what must hold at the end.
//
// A profile goes YAML -> strict decode -> settings from the command line -> defaults once -> rules, all in Parse, which
// returns every problem with its position. After Parse a profile is never changed. The structs here are the shape: their
// yaml tags are the keys, and the table in fields.go says the rest of each key: default, range, choices, documentation.
// Decoding, validation, defaults and the JSON Schema all work from that one table. The package knows no server and no
// results.
package profile

import "time"

// Profile is one experiment. See the fields for units, ranges and defaults.
type Profile struct {
	Name        string            `yaml:"name"`        // letters, digits, dashes; required
	Description string            `yaml:"description"` // what the profile shows, in a paragraph
	Labels      map[string]string `yaml:"labels"`      // free text, copied to the result
	Seed        uint64            `yaml:"seed"`        // seeds every draw; 0 (default) takes one from the clock and records it
	Load        Load              `yaml:"load"`
	Publish     Publish           `yaml:"publish"`
	Workers     Workers           `yaml:"workers"`
	Inbox       Inbox             `yaml:"inbox"`
	Retry       Retry             `yaml:"retry"`
	Topology    Topology          `yaml:"topology"`
	Drain       Drain             `yaml:"drain"`
	Redrive     Redrive           `yaml:"redrive"`
	Faults      []Fault           `yaml:"faults"`
	Thresholds  []string          `yaml:"thresholds"` // "latency_seconds.confirm.p99<50ms": a path into result.json, one of < <= > >= ==, a number or duration
	Expect      Expect            `yaml:"expect"`
}

// NeedsDatabase reports whether a run of the profile has a database.
func (p *Profile) NeedsDatabase() bool { return p.Inbox.Strategy != InboxNone }

// Closed reports whether the load has no schedule.
func (l *Load) Closed() bool { return l.Mode == LoadClosed }

// LoadClosed is the mode of loads without a schedule.
const LoadClosed = "closed"

// InboxNone is the strategy of runs without a database.
const InboxNone = "none"

// Load is the offered load. Offered messages are exactly rate x (warmup + duration), rounded down, in mode open.
type Load struct {
	Mode          string        `yaml:"mode"`           // "open" (default), or "closed": no schedule, the window is always full
	Rate          float64       `yaml:"rate"`           // messages per second in total, above 0; required in mode open, ignored in mode closed
	Duration      time.Duration `yaml:"duration"`       // measured part, above 0; required
	Warmup        time.Duration `yaml:"warmup"`         // before it, at the same rate, apart in rates and latencies, inside the account; default 0
	Arrivals      string        `yaml:"arrivals"`       // "constant" (default) or "poisson"
	Shape         []ShapePart   `yaml:"shape"`          // how the rate moves over the measured part, one part after the other; default flat
	CatchUp       string        `yaml:"catch_up"`       // what becomes of late arrivals: "bounded" (default), "shed" or "burst"
	Publishers    int           `yaml:"publishers"`     // connections, 1 (default) to 64; the rate is shared evenly
	ConfirmWindow int           `yaml:"confirm_window"` // unconfirmed messages per publisher, 1 to 1000; default 256
	ShedAfter     time.Duration `yaml:"shed_after"`     // an arrival is shed when the window has been full for this long; default 30s
	Size          int           `yaml:"size"`           // body bytes, envelope.MinSize (480) to 1 MiB; default 512
	Sizes         Sizes         `yaml:"sizes"`          // distribution of the body sizes; default fixed, at size
	SKUs          int           `yaml:"skus"`           // distinct SKUs; default 1000
	SKUDraw       SKUDraw       `yaml:"sku_draw"`       // how often each is drawn; default uniformly
	CountMin      int           `yaml:"count_min"`      // units per order, drawn uniformly from count_min to count_max; default 1
	CountMax      int           `yaml:"count_max"`      // default 5, or count_min when higher
	Bad           []Bad         `yaml:"bad"`            // messages spoilt on purpose
}

// ShapePart is one part of the load's shape. Levels are relative to load.rate and lengths to load.duration, so that -r and
// -z scale the whole.
type ShapePart struct {
	Kind      string    `yaml:"kind"`      // "flat", "ramp", "steps", "spike", "sine" or "replay"
	Share     float64   `yaml:"share"`     // of the measured part, relative to the other parts' shares; default 1
	Level     float64   `yaml:"level"`     // of flat, spike (its base) and sine (its mean); default 1
	From      float64   `yaml:"from"`      // of ramp; default 0
	To        float64   `yaml:"to"`        // of ramp; default 1
	Levels    []float64 `yaml:"levels"`    // of steps, of equal length
	Peak      float64   `yaml:"peak"`      // of spike; default 2
	At        float64   `yaml:"at"`        // of spike: where it begins, as a share of the part; default 0.4
	Width     float64   `yaml:"width"`     // of spike, as a share of the part; default 0.2
	Amplitude float64   `yaml:"amplitude"` // of sine, at most level; default 0.5
	Cycles    float64   `yaml:"cycles"`    // of sine: periods in the part; default 1
	File      string    `yaml:"file"`      // of replay: CSV of arrival times
}

// PartReplay is the kind of part that takes its arrivals from a file.
const PartReplay = "replay"

// ReplaysOnly reports whether every arrival of the measured part comes from a file, so that there is no rate.
func (l *Load) ReplaysOnly() bool {
	for _, part := range l.Shape {
		if part.Kind != PartReplay {
			return false
		}
	}
	return len(l.Shape) > 0
}

// Sizes is the distribution of the body sizes.
type Sizes struct {
	Distribution string       `yaml:"distribution"` // "fixed" (default: load.size), "uniform", "lognormal" or "list"
	Min          int          `yaml:"min"`          // bytes; of uniform, and the clip of lognormal; default 480
	Max          int          `yaml:"max"`          // bytes; default 65536
	Median       float64      `yaml:"median"`       // bytes; of lognormal; default 1024
	Sigma        float64      `yaml:"sigma"`        // of lognormal: standard deviation of the logarithm; default 0.5
	List         []SizeWeight `yaml:"list"`         // of list
}

// SizeWeight is one size of a list.
type SizeWeight struct {
	Bytes  int     `yaml:"bytes"`
	Weight float64 `yaml:"weight"` // relative to the others
}

// SKUDraw says how often each SKU is drawn.
type SKUDraw struct {
	Distribution string  `yaml:"distribution"` // "uniform" (default) or "zipf"
	Exponent     float64 `yaml:"exponent"`     // of zipf; default 1
	HotShare     float64 `yaml:"hot_share"`    // share of the orders that ask for one hot SKU besides; default 0
}

// Bad makes a share of the messages bad in one way.
type Bad struct {
	Kind  string  `yaml:"kind"`  // "bad-json", "missing-field", "unknown-schema", "empty-id" or "out-of-range"
	Share float64 `yaml:"share"` // of all messages, above 0; the shares add up to at most 1
}

// Publish is how messages reach the broker.
type Publish struct {
	Mode      string  `yaml:"mode"`       // "direct" (default), "outbox", "db-first" or "publish-first"
	Outbox    Outbox  `yaml:"outbox"`     // writers of all modes but direct, and the relays of outbox
	KillShare float64 `yaml:"kill_share"` // how often the process dies between the two steps; default 0
	Replay    Replay  `yaml:"replay"`     // of mode direct
}

// Replay publishes confirmed messages again under their ids, as somebody does who replays an archive.
type Replay struct {
	Share float64       `yaml:"share"` // of the messages, each once; default 0
	After time.Duration `yaml:"after"` // from its confirm; default 10s
}

// Outbox is the database side of the load.
type Outbox struct {
	Writers int           `yaml:"writers"` // transactions at once; default 12
	Relays  int           `yaml:"relays"`  // each with a connection to the broker; default 1
	Lanes   int           `yaml:"lanes"`   // claims at once of one relay; default 2
	Batch   int           `yaml:"batch"`   // most rows of a claim; default 512
	Poll    time.Duration `yaml:"poll"`    // how often a relay looks when nothing woke it; default 100ms
}

// Workers is the service side.
type Workers struct {
	Count               int           `yaml:"count"`                 // workers, each with a connection of its own; default 2
	Processes           int           `yaml:"processes"`             // of their own, at most count; 0 (default) is none
	Ack                 string        `yaml:"ack"`                   // "after-commit" (default), "before-commit", "on-delivery" or "auto"
	Prefetch            int           `yaml:"prefetch"`              // unacked deliveries per worker, 1 to 65535; default 50
	Concurrency         int           `yaml:"concurrency"`           // handlers at once per worker, at most prefetch; default 8, or prefetch when lower
	AckBatch            int           `yaml:"ack_batch"`             // acks gathered before a flush, at most prefetch; default 16, or prefetch when lower
	AckInterval         time.Duration `yaml:"ack_interval"`          // a partial batch is flushed after this; default 5ms
	HandlerTimeout      time.Duration `yaml:"handler_timeout"`       // default 10s
	RetryPublishTimeout time.Duration `yaml:"retry_publish_timeout"` // for one publish to a tier or parking; default 5s
	Heartbeat           time.Duration `yaml:"heartbeat"`             // of the workers' connections, whole seconds; default 10s
	RateLimit           float64       `yaml:"rate_limit"`            // handler starts per second towards the database, all workers; 0 (default) is none
	Service             Service       `yaml:"service"`
	Fail                Fail          `yaml:"fail"`
	Breaker             Breaker       `yaml:"breaker"`
}

// Service is simulated work before the transaction.
type Service struct {
	Distribution string        `yaml:"distribution"` // "fixed" (default), "uniform", "exponential" or "lognormal"
	Mean         time.Duration `yaml:"mean"`         // of fixed, exponential and lognormal; default 0
	Min          time.Duration `yaml:"min"`          // of uniform
	Max          time.Duration `yaml:"max"`          // of uniform
	Sigma        float64       `yaml:"sigma"`        // of lognormal: standard deviation of the logarithm; default 0.5
}

// Fail says how often handlers fail by themselves; the shares add up to at most 1. Permanent, refused and dies are properties
// of a message, the same on every attempt; transient and unknown are drawn for each attempt at the others.
type Fail struct {
	Transient float64 `yaml:"transient"`
	Permanent float64 `yaml:"permanent"`
	Refused   float64 `yaml:"refused"` // a business refusal, which is a result
	Dies      float64 `yaml:"dies"`    // the handler ends without a result, each time: the broker's delivery limit is what ends it
	Unknown   float64 `yaml:"unknown"` // an error of no known class
}

// Breaker is the circuit breaker in front of the handlers, one for all workers. While it is open no message is taken:
// attempts are not burnt.
type Breaker struct {
	Enabled        bool          `yaml:"enabled"`          // default false
	FailureRatio   float64       `yaml:"failure_ratio"`    // opens at this share of transient failures, above 0 to 1; default 0.5
	Window         time.Duration `yaml:"window"`           // over this long; default 5s
	MinSamples     int           `yaml:"min_samples"`      // and at least so many; default 20
	OpenFor        time.Duration `yaml:"open_for"`         // then half-open; default 1s
	HalfOpenProbes int           `yaml:"half_open_probes"` // handlers let through while half-open; all must succeed to close; default 3
}

// Inbox is the idempotent inbox.
type Inbox struct {
	Strategy     string    `yaml:"strategy"`      // "transaction" (default), "statement", "batch" or "none"
	Batch        Batch     `yaml:"batch"`         // of batch
	InitialStock int64     `yaml:"initial_stock"` // units of each SKU at the start; default 1000000000
	Events       Events    `yaml:"events"`        // of refusals
	Retention    Retention `yaml:"retention"`     // of claims
}

// Retention says how long the inbox knows a message. What it has forgotten is applied again when it comes again.
type Retention struct {
	Policy        string        `yaml:"policy"`         // "none" (default: kept for ever), "delete" or "partitions"
	Keep          time.Duration `yaml:"keep"`           // from the instant a message was due; default 168h
	Every         time.Duration `yaml:"every"`          // between purges, and the width of a partition; default 1m
	ReplayHorizon time.Duration `yaml:"replay_horizon"` // how long after it was due somebody may publish a message again; default 24h
}

// Events says how the outgoing events of refusals, which the inbox writes to its outbox, reach the broker.
type Events struct {
	Relay     string  `yaml:"relay"`      // "auto" (default: where the profile can refuse), "on" or "off"
	Relays    int     `yaml:"relays"`     // each with a connection to the broker; default 1
	Batch     int     `yaml:"batch"`      // most rows of a claim; default 512
	KillShare float64 `yaml:"kill_share"` // share of a relay's steps at which it dies; default 0
}

// Batch says how the inbox gathers deliveries into one commit. Handlers wait for their batch, so it is only as large as the
// number of handlers (workers.count x workers.concurrency) lets it be.
type Batch struct {
	Size   int           `yaml:"size"`   // messages in one commit, at most; default 256
	Linger time.Duration `yaml:"linger"` // a batch waits this long to fill; default 1ms
	Lanes  int           `yaml:"lanes"`  // batches under way at once, each on a connection of its own; default 2
}

// Retry is the budget of a message.
type Retry struct {
	Attempts        int           `yaml:"attempts"`         // attempts of a transient failure before parking, 1 to 1000; default 10
	UnknownAttempts int           `yaml:"unknown_attempts"` // attempts of an unknown error, at most attempts; default 3, or attempts when lower
	MaxAge          time.Duration `yaml:"max_age"`          // from occurred_at (or a redrive); default 1h
	Tokens          Tokens        `yaml:"tokens"`           // budget of all messages together
}

// Tokens bounds what retries add to the load, over all messages and the last ten seconds.
type Tokens struct {
	Ratio float64 `yaml:"ratio"` // retries for each first attempt, 0 to 10; 0 (default) is no such budget
	Floor float64 `yaml:"floor"` // retries per second beside them; default 10
	Over  string  `yaml:"over"`  // what becomes of a retry beyond: "park" (default) or "defer", to the last tier
}

// Topology is the exchanges and queues under test.
type Topology struct {
	Nodes              int             `yaml:"nodes"`                // that the broker's cluster has at least, 1 (default) to 5; servers of our own have so many
	Isolation          string          `yaml:"isolation"`            // "vhost" (default), "prefix" or "predeclared"
	Declare            string          `yaml:"declare"`              // "policy" (default), "arguments" or "none"
	Management         string          `yaml:"management"`           // "full" (default), "read" or "none"
	Prefix             string          `yaml:"prefix"`               // names start with it; default "" (or the run id with isolation prefix)
	Strategy           string          `yaml:"strategy"`             // "ttl-tiers" (default), "delayed-retry", "requeue", "sleep" or "message-ttl"
	ReturnBy           string          `yaml:"return_by"`            // of delayed-retry, requeue and sleep: "reject" (default) or "nack"
	DelayedRetryType   string          `yaml:"delayed_retry_type"`   // of delayed-retry: "all" (default), "failed" or "returned"
	Shards             int             `yaml:"shards"`               // of ttl-tiers: queues of the same delay, 1 (default) to 16
	DeadLetterStrategy string          `yaml:"dead_letter_strategy"` // "at-least-once" (default) or "at-most-once"
	DeliveryLimit      int             `yaml:"delivery_limit"`       // of the work queue, 1 to 1000, or -1 for none; default 8
	DeliveryLimitTo    string          `yaml:"delivery_limit_to"`    // "parking" (default) or "retry", which is refused: it is a cycle that loses messages
	ConsumerTimeout    time.Duration   `yaml:"consumer_timeout"`     // after which an unacked delivery costs its consumer; 0 (default) is the broker's own
	MaxLength          int             `yaml:"max_length"`           // of the work queue; 0 (default) is none
	ReturnVia          string          `yaml:"return_via"`           // "queue" (default) or "exchange"
	ParkVia            string          `yaml:"park_via"`             // "publish" (default) or "reject"
	ParkingRetention   time.Duration   `yaml:"parking_retention"`    // message TTL of parking; 0 (default) keeps for ever
	Tiers              []time.Duration `yaml:"tiers"`                // nominal delays, rising; default 5s, 30s, 5m
	Jitter             bool            `yaml:"jitter"`               // split each tier into sub-tiers at 0.8, 1.0 and 1.2 of its delay; default true
	TimeScale          float64         `yaml:"time_scale"`           // every tier delay is multiplied by it, above 0 to 1; default 1
}

// Drain is the end of the load: how long the backlog may take.
type Drain struct {
	Timeout time.Duration `yaml:"timeout"` // default 60s
}

// Redrive is a phase after the drain: what lies in parking goes back to the work queue.
type Redrive struct {
	Rate      float64 `yaml:"rate"`       // messages per second; 0 (default) is no such phase
	StopShare float64 `yaml:"stop_share"` // ends it when more of what was moved is parked again; default 0.5, 0 never
}

// Fault is one accident on purpose. From is counted from the start of the measured load.
type Fault struct {
	Kind  string        `yaml:"kind"` // see FaultKinds
	From  time.Duration `yaml:"from"`
	For   time.Duration `yaml:"for"`
	Fail  Fail          `yaml:"fail"`  // of workers.fail: the shares inside the window
	Times int           `yaml:"times"` // of broker.close-connections and workers.kill: how often, evenly over the window; default 1
	Side  string        `yaml:"side"`  // of broker.close-connections: "producer", "workers" or "both" (default)
	Point string        `yaml:"point"` // of workers.kill: "before-commit", "after-commit" (default) or "after-retry"

	Leave     int           `yaml:"leave"`     // of postgres.pool-squeeze: connections that are left; default 1
	Binding   string        `yaml:"binding"`   // of topology.binding-removed: "orders" (default) or "retry"
	By        string        `yaml:"by"`        // of topology.parking-unavailable: "binding" (default) or "length"
	Minority  string        `yaml:"minority"`  // of broker.partition: the node that is cut off, "leader" (default) or "follower"
	Target    string        `yaml:"target"`    // of network.*: "broker" (default) or "database"
	Delay     time.Duration `yaml:"delay"`     // of network.delay and network.jitter; default 100ms
	Bandwidth int64         `yaml:"bandwidth"` // of network.bandwidth: bytes per second of each connection; default 65536
}

// Expect is what the profile declares about the account. The guarantees fail a run beyond these; the rest are
// expectations whose breach is a failed threshold. A nil pointer is "do not check".
type Expect struct {
	Lost              int64  `yaml:"lost"`               // default 0
	DuplicateEffects  int64  `yaml:"duplicate_effects"`  // default 0
	MissingEffects    int64  `yaml:"missing_effects"`    // default 0
	Shed              *int64 `yaml:"shed"`               // at most; default 0; "any" lifts it
	Queued            *int64 `yaml:"queued"`             // at most, at the end; default 0; "any" lifts it
	Parked            *int64 `yaml:"parked"`             // exactly; default: not checked
	ConfirmedShortage *int64 `yaml:"confirmed_shortage"` // offered - confirmed at most; default 0; "any" lifts it
	BusyMachine       bool   `yaml:"busy_machine"`       // whether findings on a machine that gave no time only warn; default false
}
