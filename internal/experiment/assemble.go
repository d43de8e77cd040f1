package experiment

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spillway/internal/event"
	"spillway/internal/fault"
	"spillway/internal/latency"
	"spillway/internal/ledger"
	"spillway/internal/metrics"
	"spillway/internal/probe"
	"spillway/internal/profile"
	"spillway/internal/storm"
	"spillway/internal/timebase"
	"spillway/workers"
	"spillway/workers/breaker"
	"spillway/workers/inbox"
	"spillway/workers/retry"
	"spillway/workers/service"
)

// assemble makes and joins the parts of the run. Nothing is connected yet; the time base starts here.
func (r *run) assemble() error {
	r.base = timebase.New()
	r.ledger = r.newBook()
	r.latencies, r.lag = latency.NewSet(), latency.NewRecorder("pacer_lag")
	r.storm = storm.NewRecorder(storm.BinWidth(r.plan.ShortestTier()))
	r.pace = newPace(leadTime+r.o.Profile.Load.Warmup, r.o.Profile.Load.Duration)
	r.signals = newSignals(r.o.Profile.Topology.ParkingRetention > 0)
	if r.brokerLink != nil || r.databaseLink != nil {
		r.slowness = &slowness{}
	}
	if err := r.serveMetrics(); err != nil {
		return err
	}
	var err error
	if r.service, err = r.newService(); err != nil {
		return err
	}
	if r.refusals, err = r.newRefusals(); err != nil {
		return err
	}
	if r.forgotten, err = r.newForgetting(); err != nil {
		return err
	}
	if r.generator, err = r.newLoad(); err != nil {
		return err
	}
	r.timeline = fault.NewTimeline(r.base, r.faults(), r.faultChanged)
	if err := r.timeline.Available(); err != nil {
		return environment("%w", err)
	}
	if r.logs, err = r.latencies.OpenLogs(filepath.Join(r.o.Dir, "latency"), r.base.Start()); err != nil {
		return err
	}
	if r.watch, err = newWatch(r); err != nil {
		return err
	}
	r.probe = probe.New(probe.Config{Base: r.base, View: r.ledger.View, Depths: r.readyDepths, Listen: r.watch})
	return nil
}

// newBook returns the ledger, or what takes the place of all observers.
func (r *run) newBook() book {
	if r.o.Unobserved {
		return &tally{}
	}
	return ledger.New(r.tierNames())
}

func (r *run) tierNames() []string {
	names := make([]string, len(r.plan.Tiers))
	for i, t := range r.plan.Tiers {
		names[i] = t.Name
	}
	return names
}

func (r *run) serveMetrics() error {
	registry := prometheus.NewRegistry()
	var kinds []string
	for _, k := range profile.FaultKinds() {
		kinds = append(kinds, k.Name)
	}
	var err error
	r.metrics, err = metrics.New(registry, metrics.Options{
		RunID: r.o.RunID, Profile: r.o.Profile.Name, Version: r.o.Version, Revision: r.o.Revision,
		Tiers: r.tierNames(), Faults: kinds,
	})
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if r.server, err = metrics.Serve(context.Background(), registry, r.o.MetricsAddr); err != nil {
		return environment("metrics: %w", err)
	}
	r.say("metrics: http://%s/metrics", r.server.Addr())
	return r.announceTarget()
}

func (r *run) loadObserver() event.LoadObserver {
	if r.o.Unobserved {
		return r.ledger
	}
	all := event.Load{r.ledger, r.latencies, r.storm, r.pace, r.metrics}
	if len(r.o.Profile.Faults) > 0 { // for their marks alone
		all = append(all, confirmsHeard{silence: &r.signals.confirms})
	}
	if r.slowness != nil {
		all = append(all, r.slowness)
	}
	return all
}

func (r *run) workObserver() event.WorkObserver {
	if r.o.Unobserved {
		return r.ledger
	}
	all := event.Work{r.ledger, r.latencies, r.storm, r.signals, r.metrics}
	if r.slowness != nil {
		all = append(all, r.slowness)
	}
	return all
}

func (r *run) newService() (*workers.Service, error) {
	w := &r.o.Profile.Workers
	s := &w.Service
	times, err := service.NewTime(s.Distribution, s.Mean, s.Min, s.Max, s.Sigma, r.seed)
	if err != nil {
		return nil, fmt.Errorf("service time: %w", err)
	}
	i := &r.o.Profile.Inbox
	r.box, err = inbox.New(i.Strategy, r.db.Pool(), inbox.WithBatch(inbox.BatchOptions{
		Size: i.Batch.Size, Linger: i.Batch.Linger, Lanes: i.Batch.Lanes,
	}))
	if err != nil {
		return nil, err
	}
	r.failing = workers.NewFailing(shares(w.Fail), r.seed)
	return workers.New(workers.Config{
		Base: r.base, Driver: r.broker.Driver(), Version: r.o.Version, MeasureFrom: leadTime + r.o.Profile.Load.Warmup, Seed: r.seed,
		Run: r.o.RunID, Queue: r.plan.Work, Workers: w.Count, Prefetch: w.Prefetch, Concurrency: w.Concurrency, AckBatch: w.AckBatch,
		AckInterval: w.AckInterval, HandlerTimeout: w.HandlerTimeout, RetryPublishTimeout: w.RetryPublishTimeout,
		RateLimit: w.RateLimit, Breaker: breakerSettings(w.Breaker), Inbox: r.box, ServiceTime: times, Failing: r.failing,
		Budget: r.budget(), Park: parkVia(r.o.Profile.Topology.ParkVia),
		Routes:   workers.Routes{RetryExchange: r.plan.Retry, ParkingExchange: r.plan.DeadLetter, ParkingKey: r.plan.ParkingKey},
		Observer: r.workObserver(), Links: event.Links{r.signals, r.metrics}, Breakers: event.Breakers{r.signals, r.metrics},
	}), nil
}

func parkVia(way string) workers.Park {
	if way == "reject" {
		return workers.ParkByReject
	}
	return workers.ParkByPublish
}

func breakerSettings(b profile.Breaker) *breaker.Settings {
	if !b.Enabled {
		return nil
	}
	return &breaker.Settings{
		FailureRatio: b.FailureRatio, Window: b.Window, MinSamples: b.MinSamples, OpenFor: b.OpenFor, Probes: b.HalfOpenProbes,
	}
}

func shares(f profile.Fail) service.Shares {
	return service.Shares{Transient: f.Transient, Permanent: f.Permanent, Refused: f.Refused, Unknown: f.Unknown}
}

func (r *run) budget() *retry.Budget {
	b := &retry.Budget{
		Attempts: r.o.Profile.Retry.Attempts, UnknownAttempts: r.o.Profile.Retry.UnknownAttempts, MaxAge: r.o.Profile.Retry.MaxAge,
	}
	for _, t := range r.plan.Tiers {
		tier := retry.Tier{Name: t.Name}
		for _, q := range t.Queues {
			tier.Routes = append(tier.Routes, retry.Route{Key: q.RoutingKey, Delay: q.Delay})
		}
		b.Tiers = append(b.Tiers, tier)
	}
	return b
}

func (r *run) faultChanged(kind string, active bool, at time.Duration) {
	r.metrics.SetFault(kind, active)
	r.watch.fault(kind, active)
	if active {
		r.say("fault: %s begins at %.1fs", kind, at.Seconds())
		return
	}
	r.say("fault: %s healed at %.1fs", kind, at.Seconds())
}
