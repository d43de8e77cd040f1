package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"spillway/internal/latency"
	"spillway/internal/ledger"
	"spillway/internal/probe"
	"spillway/internal/profile"
	"spillway/internal/result"
)

// result puts together what was measured, and the verdict on it.
func (r *run) result() (*result.Result, error) {
	effective, err := json.Marshal(r.o.Profile)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	res := &result.Result{
		Schema: result.Schema, Run: r.identity(), Environment: r.environment(), Profile: effective, Phases: r.phaseList(),
		Messages: r.messages(), Rates: r.rates(), Latency: r.latencySummaries(), OldestAge: oldestAges(r.probe.Ages()),
		Inbox: r.inbox(), Publish: r.published, Redrive: r.redriven, Signals: r.signalSummary(), Process: r.process(), Dir: r.o.Dir,
	}
	if !r.o.Unobserved {
		res.Publish.SentEachSecond = r.pace.until(r.offeredUntil)
	}
	res.Faults, res.RetryStorm = r.storms(res.Messages)
	r.judge(res)
	return res, nil
}

func (r *run) identity() result.Run {
	labels := maps.Clone(r.o.Profile.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, r.o.Labels)
	return result.Run{
		ID: r.o.RunID, Name: r.o.Profile.Name, StartedAt: r.startedAt.UTC(), FinishedAt: time.Now().UTC(), Labels: labels,
		Version: r.o.Version, Revision: r.o.Revision, Seed: r.seed, LoadMode: r.o.Profile.Load.Mode,
		Instances: []result.Instance{{ID: 0, Offered: r.account.Offered}}, Replays: r.o.Replays.report(),
	}
}

func (r *run) phaseList() []result.Phase {
	out := make([]result.Phase, len(r.phases))
	for i, p := range r.phases {
		out[i] = result.Phase{Name: p.name, StartSeconds: p.start.Seconds(), EndSeconds: p.end.Seconds()}
	}
	return out
}

// messages writes the account, and beside it what only events can tell.
func (r *run) messages() result.Messages {
	a, c := &r.account, r.ledger.Counts()
	m := result.Messages{
		Offered: a.Offered, Shed: a.Shed, Confirmed: a.Confirmed, Returned: a.Returned, Nacked: a.Nacked,
		Unknown: a.Unknown + a.Unanswered - a.OutboxPending, OutboxPending: a.OutboxPending, Publishes: a.Publishes, Republished: a.Republished,
		Delivered: c.Delivered, Redelivered: c.Redelivered, DuplicateDeliveries: c.Duplicates, RetriesScheduled: c.Retried,
		Applied: a.Applied, Refused: a.Refused, Parked: a.Parked, ParkedByReason: r.signals.parkedBy(),
		QueuedAtEnd: a.Queued, Expired: a.Expired, Lost: a.Lost, DuplicateEffects: a.DuplicateEffects,
		MissingEffects: a.MissingEffects, NotAudited: a.NotAudited, Overlaps: a.Overlaps, RetriesPerMessage: map[string]int64{},
	}
	for retries, n := range c.RetriesPerMessage {
		m.RetriesPerMessage[strconv.Itoa(retries)] = n
	}
	return m
}

// rates are over the measured load.
func (r *run) rates() result.Rates {
	start, end, ok := r.measured.span()
	if !ok {
		return result.Rates{}
	}
	per := perSecond(end.at - start.at)
	s, e := start.counts, end.counts
	return result.Rates{
		Offered: per(e.Offered - s.Offered), Confirmed: per(e.Confirmed - s.Confirmed), Delivered: per(e.Delivered - s.Delivered),
		Acked: per(e.Acked - s.Acked), Applied: per(e.Applied - s.Applied), Parked: per(e.Parked - s.Parked),
	}
}

func perSecond(over time.Duration) func(int64) *float64 {
	return func(n int64) *float64 { return result.Number(float64(n) / over.Seconds()) }
}

func (r *run) inbox() result.Inbox {
	counts := r.ledger.Counts()
	out := result.Inbox{
		DuplicatesAbsorbed: counts.Duplicates, Events: r.eventsSummary(), Retention: r.forgotten.summary(r.o.Profile.Inbox.Retention.Policy),
	}
	start, end, ok := r.measured.span()
	if !ok {
		return out
	}
	per := perSecond(end.at - start.at)
	applied := end.counts.Applied - start.counts.Applied
	claims := applied + end.counts.Refused - start.counts.Refused
	out.AppliedPerSecond, out.ClaimsPerSecond = per(applied), per(claims)
	if start.known && end.known {
		d := end.database.Since(start.database)
		out.CommitsPerSecond = per(d.Commits)
		out.WALBytes, out.DeadTuples = result.Number(float64(d.WALBytes)), result.Number(float64(d.DeadTuples))
		if d.Commits > 0 {
			out.RowsPerCommit = result.Number(float64(claims) / float64(d.Commits))
		}
	}
	return out
}

func (r *run) latencySummaries() result.Latencies {
	s := r.latencies
	return result.Latencies{
		Confirm: summary(s.Confirm), Acceptance: summary(s.Acceptance), AcceptanceUncorrected: summary(s.AcceptanceUncorrected),
		Sojourn: summary(s.Sojourn), SojournUncorrected: summary(s.SojournUncorrected), Service: summary(s.Service),
		ScheduleLag: summary(s.ScheduleLag), RelayLag: summary(s.RelayLag), DelayError: summary(s.DelayError),
	}
}

func summary(r *latency.Recorder) *result.Latency {
	s, ok := r.Summary()
	if !ok {
		return nil
	}
	return &result.Latency{
		Count: s.Count, Min: s.Min, Mean: s.Mean, P50: s.P50, P90: s.P90, P95: s.P95, P99: s.P99, P999: s.P999, Max: s.Max,
	}
}

func oldestAges(a *probe.Ages) result.OldestAges {
	out := result.OldestAges{
		Work: age(a.Work()), Retry: age(a.Retry()), Parking: age(a.Parking()), Unsettled: age(a.Unsettled()),
		Tiers: map[string]*result.Age{},
	}
	for tier, seen := range a.Tiers() {
		out.Tiers[tier] = age(seen)
	}
	return out
}

func age(a probe.Age) *result.Age {
	if a.Samples == 0 {
		return nil
	}
	return &result.Age{P50: a.P50.Seconds(), P99: a.P99.Seconds(), Max: a.Max.Seconds(), End: a.End.Seconds()}
}

func (r *run) signalSummary() result.Signals {
	now := r.base.Now()
	return result.Signals{
		BlockedSeconds: result.Seconds(r.signals.blockedFor(now)), Reconnects: r.signals.reconnects.Load(),
		ConsumerCancels: r.signals.cancels.Load(), BreakerOpens: r.signals.breakerOpens.Load(),
		BreakerOpenSeconds: result.Seconds(r.signals.breakerOpenFor(now)), PoolWaitSeconds: r.poolWait(),
		CatchUp: r.catchUpSummary(),
	}
}

// poolWait is unknown, not 0, without a pool to wait for.
func (r *run) poolWait() *float64 {
	if r.db.Pool() == nil {
		return nil
	}
	return result.Seconds(r.pool().Wait)
}

func (r *run) catchUpSummary() result.CatchUp {
	out := result.CatchUp{Policy: r.o.Profile.Load.CatchUp}
	if r.o.Profile.Load.Closed() {
		out.Policy = noCatchUp
	}
	for _, c := range r.catchUps {
		out.Late += c.Late()
		out.Bursts += c.Bursts()
	}
	return out
}

// noCatchUp is the policy of a load without a schedule: nothing can be late.
const noCatchUp = "none"

func (r *run) process() result.Process {
	now := used()
	cpu := now.cpu - r.before.cpu + r.crewCPU()
	out := result.Process{
		CPUSeconds: result.Seconds(cpu), MaxRSSBytes: now.rss, GCPauseMaxSeconds: result.Seconds(now.pause),
		GeneratorLagP50Seconds: quantileOf(r.lag, 0.50), GeneratorLagP99Seconds: quantileOf(r.lag, 0.99),
		ProbeGapMaxSeconds: result.Seconds(r.probe.Ages().Gap()), ClockDriftSeconds: result.Seconds(r.base.Drift()),
	}
	if r.account.Offered > 0 {
		out.CPUMicrosecondsPerMessage = result.Number(float64(cpu.Microseconds()) / float64(r.account.Offered))
	}
	if s, ok := r.measured.strain(); ok {
		s.report(&out)
	}
	return out
}

// quantileOf is unknown, not 0, without samples.
func quantileOf(r *latency.Recorder, q float64) *float64 {
	d, ok := r.Quantile(q)
	if !ok {
		return nil
	}
	return result.Seconds(d)
}

// save writes the run's files. Latency logs and series are there already.
func (r *run) save(res *result.Result) error {
	path := filepath.Join(r.o.Dir, "profile.yaml")
	if err := os.WriteFile(path, profile.Marshal(r.o.Profile), 0o644); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if res.Verdict != result.Pass && r.o.Servers.Control != nil {
		if err := r.o.Servers.Control.CopyLogs(filepath.Join(r.o.Dir, stackLogs)); err != nil {
			r.say("stack logs: %v", err)
		}
	}
	if err := result.Write(r.o.Dir, res); err != nil {
		return err
	}
	res.Files = r.files()
	return nil
}

// allowance is the loss that the profile declares.
func (r *run) allowance() ledger.Allowance {
	e := &r.o.Profile.Expect
	return ledger.Allowance{Lost: e.Lost, DuplicateEffects: e.DuplicateEffects, MissingEffects: e.MissingEffects}
}
