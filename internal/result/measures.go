package result

// Messages is the account, over distinct messages unless a comment says otherwise, warm-up included:
//
//	offered   = shed + outbox_pending + confirmed + returned + nacked + unknown    last outcome of each message
//	publishes = offered - shed - outbox_pending + republished                      the producer's alone
//	fate of a message, the first that is true: applied | refused > parked > queued > expired > lost
type Messages struct {
	Offered             int64            `json:"offered"`
	Shed                int64            `json:"shed"`                 // due but not sent
	OutboxPending       int64            `json:"outbox_pending"`       // in the outbox, not yet sent
	Confirmed           int64            `json:"confirmed"`            // the broker took responsibility
	Returned            int64            `json:"returned"`             // no queue was bound
	Nacked              int64            `json:"nacked"`               // the broker refused
	Unknown             int64            `json:"unknown"`              // no answer; may have arrived
	Publishes           int64            `json:"publishes"`            // writes by the producer
	Republished         int64            `json:"republished"`          // of these, after the first of a message
	Delivered           int64            `json:"delivered"`            // deliveries to workers
	Redelivered         int64            `json:"redelivered"`          // of these, with the broker's hint
	Applied             int64            `json:"applied"`              // a first-time effect is in the database
	Refused             int64            `json:"refused"`              // a business refusal is in the database
	DuplicateDeliveries int64            `json:"duplicate_deliveries"` // deliveries that the inbox absorbed
	RetriesScheduled    int64            `json:"retries_scheduled"`    // copies confirmed in a tier, or returns to the work queue where topology.strategy makes no copy
	Parked              int64            `json:"parked"`
	ParkedByReason      map[string]int64 `json:"parked_by_reason"`
	QueuedAtEnd         int64            `json:"queued_at_end"` // in the work queue or a tier
	Expired             int64            `json:"expired"`       // by a TTL of parking
	Lost                int64            `json:"lost"`          // confirmed, and found nowhere
	NotAudited          int64            `json:"not_audited"`   // found nowhere while a place could not be read: lost or not
	DuplicateEffects    int64            `json:"duplicate_effects"`
	MissingEffects      int64            `json:"missing_effects"`     // claimed in the inbox without an effect
	Overlaps            int64            `json:"overlaps"`            // found in two places, applied and parked say
	OrderViolations     *int64           `json:"order_violations"`    // null when no order was promised, so none was watched
	RetriesPerMessage   map[string]int64 `json:"retries_per_message"` // messages by number of retries
}

// Rates are means over the measured load, per second; null when the load had no length.
type Rates struct {
	Offered   *float64 `json:"offered_per_second"`
	Confirmed *float64 `json:"confirmed_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Acked     *float64 `json:"acked_per_second"`
	Applied   *float64 `json:"applied_per_second"` // goodput
	Parked    *float64 `json:"parked_per_second"`
}

// Latencies are the distributions of a run, in seconds, without the warm-up. One without samples is null.
type Latencies struct {
	Confirm               *Latency `json:"confirm"`                // confirm seen - sent
	Acceptance            *Latency `json:"acceptance"`             // confirm seen - scheduled
	AcceptanceUncorrected *Latency `json:"acceptance_uncorrected"` // the same from the moment of sending
	Sojourn               *Latency `json:"sojourn"`                // effect committed - scheduled
	SojournUncorrected    *Latency `json:"sojourn_uncorrected"`    // the same from the moment of sending
	Service               *Latency `json:"service"`                // handler start to COMMIT
	ScheduleLag           *Latency `json:"schedule_lag"`           // sent - scheduled: the generator's own health
	RelayLag              *Latency `json:"relay_lag"`              // outbox row committed to confirm
	DelayError            *Latency `json:"delay_error"`            // time in a tier - its TTL
}

// Latency is one distribution in seconds, from a full histogram.
type Latency struct {
	Count int64   `json:"count"` // samples, above 0
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// OldestAges are the ages of the oldest message by place, sampled ten times a second.
type OldestAges struct {
	Work      *Age            `json:"work"`    // ready in the work queue
	Retry     *Age            `json:"retry"`   // in any tier
	Parking   *Age            `json:"parking"` // in the parking lot
	Unsettled *Age            `json:"unsettled"`
	Tiers     map[string]*Age `json:"tiers"` // by nominal name
}

// Age is how old the oldest message of one place was over the run, in seconds. An empty place has the age 0.
type Age struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	End float64 `json:"end"` // at the end of the run
}

// Outcomes of a retry storm.
const (
	StormStable     = "stable"     // the system never left its state
	StormRecovered  = "recovered"  // it left it and came back
	StormMetastable = "metastable" // the fault is gone, goodput did not come back
)

// Storm is what a fault did to the retries; for a run, its worst fault window. A number that could not be taken is null.
type Storm struct {
	Amplification        *float64 `json:"amplification"`           // deliveries per distinct message
	BaselinePerSecond    *float64 `json:"baseline_per_second"`     // arrivals before the fault
	PeakReturnsPerSecond *float64 `json:"peak_returns_per_second"` // from tiers, in the peak bin
	Synchronisation      *float64 `json:"synchronisation"`         // peak bin over mean bin
	DebtMax              *float64 `json:"debt_max"`                // messages in tiers
	AreaMessages         *float64 `json:"area_messages"`           // arrivals above capacity, over time
	RecoverySeconds      *float64 `json:"recovery_seconds"`        // from the fault's end; null when it never came
	Outcome              string   `json:"outcome"`                 // one of the outcomes above; "" without a fault
}

// Inbox is the database's side of the work.
type Inbox struct {
	AppliedPerSecond   *float64   `json:"applied_per_second"`
	ClaimsPerSecond    *float64   `json:"claims_per_second"`
	DuplicatesAbsorbed int64      `json:"duplicates_absorbed"`
	CommitsPerSecond   *float64   `json:"commits_per_second"`
	RowsPerCommit      *float64   `json:"rows_per_commit"`
	WALBytes           *float64   `json:"wal_bytes"`
	DeadTuples         *float64   `json:"dead_tuples"`
	Events             *Events    `json:"events"`    // null when no relay publishes them, or when they could not be audited
	Retention          *Retention `json:"retention"` // null in an inbox that forgets nothing
}

// Retention is what the purges of the inbox did and took.
type Retention struct {
	Policy         string  `json:"policy"`          // delete or partitions
	Purges         int64   `json:"purges"`          // that ran to their end
	Claims         int64   `json:"claims"`          // that were forgotten
	Postponed      int64   `json:"postponed"`       // purges put off, at least in part, since others were using the inbox
	Failed         int64   `json:"failed"`          // purges that the database did not carry out
	BusySeconds    float64 `json:"busy_seconds"`    // spent purging
	LongestSeconds float64 `json:"longest_seconds"` // by one purge
}

// Events is what became of the outgoing events of refusals: refused, rows and distinct are the same, or the run fails.
type Events struct {
	Refused    int64  `json:"refused"`    // messages with a refusal in the effect log
	Rows       int64  `json:"rows"`       // events in the outbox
	Unsent     int64  `json:"unsent"`     // of these, not marked sent
	Distinct   int64  `json:"distinct"`   // events at the broker, by id
	Duplicates int64  `json:"duplicates"` // copies there beyond the first of each
	Relay      *Relay `json:"relay"`
}

// Redrive is what the phase of that name moved.
type Redrive struct {
	Parked int64 `json:"parked"` // messages that lay in parking at its start
	Moved  int64 `json:"moved"`  // of these, back in the work queue
	Back   int64 `json:"back"`   // messages that were parked meanwhile
}

// Publish is how the messages reached the broker, and what that way lost.
type Publish struct {
	Mode               string `json:"mode"`                 // direct, outbox, db-first or publish-first
	Orders             *int64 `json:"orders"`               // business rows committed; null without a database on the load side
	OrdersWithoutEvent *int64 `json:"orders_without_event"` // committed, and no publish of their event was confirmed or is pending
	EventsWithoutOrder *int64 `json:"events_without_order"` // confirmed, and no such order is committed
	Relay              *Relay `json:"relay"`                // null without an outbox
	// SentEachSecond is the first publishes in each whole second of the measured load, by the instant of sending;
	// empty when nothing heard of them.
	SentEachSecond []int64 `json:"sent_each_second"`
}

// Relay is what the outbox relays did.
type Relay struct {
	Batches    int64 `json:"batches"`     // claims with at least one row
	Published  int64 `json:"published"`   // writes to the broker
	Duplicates int64 `json:"duplicates"`  // of these, of rows that the broker had confirmed before
	LostClaims int64 `json:"lost_claims"` // claims whose transaction was gone before the marks were written
	Kills      int64 `json:"kills"`       // relays that the profile let die
	Skipped    int64 `json:"skipped"`     // rows left behind by rows written later; must be 0
}

// Signals are what an operator would see.
type Signals struct {
	BlockedSeconds     *float64 `json:"blocked_seconds"`
	Reconnects         int64    `json:"reconnects"`
	ConsumerCancels    int64    `json:"consumer_cancels"`
	BreakerOpens       int64    `json:"breaker_opens"`
	BreakerOpenSeconds *float64 `json:"breaker_open_seconds"`
	PoolWaitSeconds    *float64 `json:"pool_wait_seconds"`
	CatchUp            CatchUp  `json:"catch_up"`
}

// CatchUp says what the generator did about arrivals that it was late for.
type CatchUp struct {
	Policy string `json:"policy"`
	Late   int64  `json:"late"`
	Bursts int64  `json:"bursts"`
}

// Process is what the generator and the workers cost.
type Process struct {
	CPUSeconds                *float64 `json:"cpu_seconds"`
	CPUMicrosecondsPerMessage *float64 `json:"cpu_microseconds_per_message"`
	MaxRSSBytes               int64    `json:"max_rss_bytes"`
	GCPauseMaxSeconds         *float64 `json:"gc_pause_max_seconds"` // since the process began

	// Over the measured load; null, and 0 processors, when it did not get that far. The bounds are in docs/measurement.md.
	GOMAXPROCS              int      `json:"gomaxprocs"`              // processors on which Go code ran at once
	CPUShareOfMachine       *float64 `json:"cpu_share_of_machine"`    // own processor time / all processors' time
	CPUShareOfGOMAXPROCS    *float64 `json:"cpu_share_of_gomaxprocs"` // own processor time / that of so many processors
	GCPauseP99Seconds       *float64 `json:"gc_pause_p99_seconds"`    // of stop-the-world pauses
	GCPauseLoadMaxSeconds   *float64 `json:"gc_pause_load_max_seconds"`
	GoroutineWaitP99Seconds *float64 `json:"goroutine_wait_p99_seconds"` // from being able to run to running
	ThreadWaitMeanSeconds   *float64 `json:"thread_wait_mean_seconds"`   // for a processor, before each time that a thread ran; null when unknown
	ThreadWaitRatio         *float64 `json:"thread_wait_ratio"`          // all threads' wait / the load's length: so many waited at a time
	StealRatio              *float64 `json:"steal_ratio"`                // of the machine; null when unknown

	// Over the whole run.
	GeneratorLagP50Seconds *float64 `json:"generator_lag_p50_seconds"` // due to handed over, in which no broker has a part; null without a schedule
	GeneratorLagP99Seconds *float64 `json:"generator_lag_p99_seconds"`
	ProbeGapMaxSeconds     *float64 `json:"probe_gap_max_seconds"` // between two samples of the ages
	ClockDriftSeconds      *float64 `json:"clock_drift_seconds"`   // wall clock ahead of the monotonic clock
}
