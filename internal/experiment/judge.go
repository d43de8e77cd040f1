package experiment

import (
	"errors"
	"fmt"
	"time"

	"spillway/internal/ledger"
	"spillway/internal/profile"
	"spillway/internal/result"
)

// Bounds of self-distrust: beyond them the generator, not the system under test, may be what was measured.
const (
	maxPacerLagP50 = 10 * time.Millisecond  // of due instant to hand-over: beyond, the generator is starved all the time
	maxPacerLagP99 = 300 * time.Millisecond // the same: beyond, it was starved for a while
	maxProbeGap    = 2 * time.Second        // between two samples of the ages, which are due ten times a second
	maxClockDrift  = 100 * time.Millisecond // wall clock against monotonic clock over the run
	minSamples     = 100                    // of confirm latency: below, a p99 is one message
)

// Exit codes that a verdict leads to; the command line owns the full table.
const (
	exitPass        = 0
	exitThreshold   = 3
	exitGuarantee   = 4
	exitInvalid     = 5
	exitInterrupted = 130
)

// judge gives the verdict: a broken guarantee before an invalid measurement before a missed threshold.
func (r *run) judge(res *result.Result) {
	res.Findings = []result.Finding{}
	broken := r.brokenGuarantees(res)
	invalid := r.reasonsForDistrust(res)
	missed := r.missedThresholds(res)
	r.remarks(res)
	switch {
	case broken:
		res.Verdict, res.Run.ExitCode = result.Fail, exitGuarantee
	case invalid:
		res.Verdict, res.Run.ExitCode = result.Invalid, exitInvalid
	case missed:
		res.Verdict, res.Run.ExitCode = result.Fail, exitThreshold
	default:
		res.Verdict, res.Run.ExitCode = result.Pass, exitPass
	}
	if r.interrupted && (res.Verdict == result.Pass) {
		res.Run.ExitCode = exitInterrupted
	}
}

func find(res *result.Result, severity result.Severity, code, format string, args ...any) {
	res.Findings = append(res.Findings, result.Finding{Severity: severity, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (r *run) brokenGuarantees(res *result.Result) bool {
	broken := r.account.Broken(r.allowance())
	for _, err := range broken {
		find(res, result.Error, guaranteeCode(err), "%v", err)
	}
	if f := res.Inbox.Retention; f != nil && f.Claims > 0 && r.account.DuplicateEffects > 0 {
		find(res, result.Info, "forgotten", "the inbox had forgotten %d claims: a message that comes again more than %s after it was due is applied again",
			f.Claims, r.o.Profile.Inbox.Retention.Keep)
	}
	skipped := skippedRows(res.Publish.Relay)
	if events := res.Inbox.Events; events != nil {
		skipped += skippedRows(events.Relay)
	}
	if skipped > 0 {
		find(res, result.Error, "rows-skipped", "the relay left %d outbox rows behind that were written before rows it published", skipped)
	}
	return r.brokenEvents(res) || skipped > 0 || len(broken) > 0
}

func skippedRows(relay *result.Relay) int64 {
	if relay == nil {
		return 0
	}
	return relay.Skipped
}

// brokenEvents holds refusals, rows and events to each other; what was not audited makes the run invalid elsewhere.
func (r *run) brokenEvents(res *result.Result) bool {
	if r.refusals == nil || r.refusals.came == nil {
		return false
	}
	err := r.refusals.came.Broken()
	if err != nil {
		find(res, result.Error, "events-mismatch", "%v", err)
	}
	return err != nil
}

func guaranteeCode(err error) string {
	switch {
	case errors.Is(err, ledger.ErrLost):
		return "lost"
	case errors.Is(err, ledger.ErrDuplicateEffects):
		return "duplicate-effects"
	default:
		return "missing-effects"
	}
}

// reasonsForDistrust names everything that makes the measurement untrustworthy.
func (r *run) reasonsForDistrust(res *result.Result) bool {
	before := len(res.Findings)
	invalid := func(code, format string, args ...any) { find(res, result.Error, code, format, args...) }
	if err := r.account.Sound(); err != nil {
		invalid("account", "%v", err)
	}
	if !r.o.Profile.Expect.BusyMachine {
		r.distrustMachine(invalid)
	}
	for _, rec := range r.latencies.All() {
		if n := rec.Overflows(); n > 0 {
			invalid("recorder-overflow", "%d values of %s were above the recorder's range", n, rec.Name())
		}
	}
	r.distrustSamples(invalid)
	r.distrustFaults(invalid)
	for _, d := range r.deaths.seen() {
		invalid("server-died", "%s ended by itself: %v", d.Service, d.Err)
	}
	if r.redriveErr != nil {
		invalid("redrive-ended", "%v", r.redriveErr)
	}
	if r.processes != nil {
		for _, err := range r.processes.Deaths() {
			invalid("worker-died", "%v", err)
		}
	}
	return len(res.Findings) > before
}

// distrustMachine names what says that this process had too little of the machine, or a clock that was set. Latencies and rates are
// spoilt by that, and the account is not.
func (r *run) distrustMachine(found func(code, format string, args ...any)) {
	r.distrustGenerator(found)
	if drift := r.base.Drift(); drift.Abs() > maxClockDrift {
		found("clock-stepped", "the wall clock moved %v against the monotonic clock during the run", drift)
	}
	if s, ok := r.measured.strain(); ok {
		for _, why := range s.reasons(r.o.Profile.Load.Closed()) {
			found(why.code, "%s", why.message)
		}
	}
	if gap := r.probe.Ages().Gap(); gap > maxProbeGap {
		found("probe-gap", "ages were not sampled for %v (bound %v): what was oldest meanwhile is not known", gap.Round(time.Millisecond), maxProbeGap)
	}
}

// distrustGenerator looks at the generator's own lag, in which no broker has a part. Two bounds tell a starved generator
// from one hiccup of the machine in a short run.
func (r *run) distrustGenerator(invalid func(code, format string, args ...any)) {
	p50, _ := r.lag.Quantile(0.50)
	p99, _ := r.lag.Quantile(0.99)
	if p50 > maxPacerLagP50 || p99 > maxPacerLagP99 {
		invalid("generator-lagged", "the generator handed its arrivals over late: %v at p50 (bound %v), %v at p99 (bound %v); "+
			"it was starved, so its figures are not the broker's: give it more CPU or a lower rate",
			p50.Round(time.Microsecond), maxPacerLagP50, p99.Round(time.Microsecond), maxPacerLagP99)
	}
}

func (r *run) distrustSamples(invalid func(code, format string, args ...any)) {
	s, _ := r.latencies.Confirm.Summary()
	if s.Count < minSamples {
		invalid("too-few-samples", "%d confirm latencies were recorded; %d are needed: offer more, or for longer", s.Count, minSamples)
	}
	if r.outOfTime {
		invalid("out-of-time", "--max-time %v ended the run before its schedule did", r.o.MaxTime)
	}
}

func (r *run) distrustFaults(invalid func(code, format string, args ...any)) {
	windows := r.timeline.Windows()
	for _, w := range windows {
		switch {
		case w.Err != nil:
			invalid("fault-failed", "fault %s: %v", w.Kind, w.Err)
		case !w.Felt() && !w.Cut:
			invalid("fault-without-mark", "fault %s left no mark in its window (%v): it tested nothing; is there load on what it breaks?",
				w.Kind, w.Evidence)
		}
	}
	if planned := len(r.o.Profile.Faults); len(windows) < planned && !r.interrupted && !r.outOfTime {
		invalid("fault-missing", "%d of %d faults were carried out", len(windows), planned)
	}
}

// missedThresholds holds the profile's thresholds and expectations against the result.
func (r *run) missedThresholds(res *result.Result) bool {
	res.Thresholds = result.Evaluate(r.o.Profile.ParsedThresholds(), res)
	missed := false
	for _, t := range res.Thresholds {
		if !t.OK {
			missed = true
			find(res, result.Error, "threshold", "%s does not hold", t.Expression)
		}
	}
	for _, e := range expectations(&r.o.Profile.Expect, res.Messages) {
		if e.broken() {
			missed = true
			find(res, result.Error, "expectation", "%s", e)
		}
	}
	return missed
}

// expectation is one line of the profile's expect.
type expectation struct {
	name  string
	limit *int64 // nil is not checked
	found int64
	exact bool
}

func expectations(e *profile.Expect, m result.Messages) []expectation {
	return []expectation{
		{name: "shed", limit: e.Shed, found: m.Shed},
		{name: "queued_at_end", limit: e.Queued, found: m.QueuedAtEnd},
		{name: "parked", limit: e.Parked, found: m.Parked, exact: true},
		{name: "offered - confirmed", limit: e.ConfirmedShortage, found: m.Offered - m.Confirmed},
	}
}

func (e expectation) broken() bool {
	switch {
	case e.limit == nil:
		return false
	case e.exact:
		return e.found != *e.limit
	default:
		return e.found > *e.limit
	}
}

func (e expectation) String() string {
	bound := "at most"
	if e.exact {
		bound = "exactly"
	}
	return fmt.Sprintf("%s is %d, expected %s %d", e.name, e.found, bound, *e.limit)
}

// remarks are findings that decide nothing.
func (r *run) remarks(res *result.Result) {
	if r.o.Profile.Expect.BusyMachine {
		r.distrustMachine(func(code, format string, args ...any) { find(res, result.Warning, code, format, args...) })
	}
	if r.interrupted {
		find(res, result.Warning, "interrupted", "the run was interrupted; what had been offered was drained and audited")
	}
	if r.o.Profile.Load.Closed() {
		find(res, result.Warning, "closed-load", "the load had no schedule: it offered what the broker took, so acceptance and sojourn "+
			"count from the sending and leave out the wait of messages that a slow broker kept from being sent; read the rates")
	}
	if !r.drained {
		find(res, result.Warning, "not-drained", "the backlog was not drained within %v", r.o.Profile.Drain.Timeout)
	}
	for _, rec := range r.latencies.All() {
		if n := rec.Negatives(); n > 0 {
			find(res, result.Warning, "negative-durations", "%d values of %s were negative and not recorded", n, rec.Name())
		}
	}
	if r.refusals == nil && r.account.Refused > 0 {
		find(res, result.Warning, "events-not-relayed", "the events of %d refusals were left in the database: no relay runs with "+
			"inbox.events.relay %s", r.account.Refused, r.o.Profile.Inbox.Events.Relay)
	}
	if r.held > 0 {
		find(res, result.Warning, "held-by-broker", "the broker holds %d messages for a dead-letter target that refuses them; "+
			"their ids cannot be read, so they are counted as queued by number alone", r.held)
	}
	if r.account.Foreign > 0 {
		find(res, result.Warning, "foreign", "%d things were found that this run did not send", r.account.Foreign)
	}
	if res.RetryStorm.Outcome == "metastable" {
		find(res, result.Warning, "metastable", "after the fault the goodput did not come back while load was offered")
	}
}
