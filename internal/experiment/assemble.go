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
	if err = r.newCrew(); err != nil {
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
		Tiers: r.tierNames(), Faults: kinds, Latencies: r.latencies,
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

func (r *run) faultChanged(kind string, active bool, at time.Duration) {
	r.metrics.SetFault(kind, active)
	r.watch.fault(kind, active)
	if active {
		r.say("fault: %s begins at %.1fs", kind, at.Seconds())
		return
	}
	r.say("fault: %s healed at %.1fs", kind, at.Seconds())
}
