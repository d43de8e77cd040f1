package experiment

import (
	"context"
	"time"

	"spillway/internal/crew"
	"spillway/internal/event"
	"spillway/internal/fault"
	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/workers"
	"spillway/workers/retry"
	"spillway/workers/service"
)

// theCrew is the workers of the run, in this process or in others.
type theCrew interface {
	// Run runs them until Stop and everything held is settled, or until ctx, the hard stop, ends.
	Run(ctx context.Context) error
	Stop()
	// Open puts failure shares in place of the usual ones, until Close.
	Open(window service.Shares)
	Close()
	Simulated() int64 // attempts that the failure model let fail
}

// newCrew makes the workers. processes stays nil where they are in this process.
func (r *run) newCrew() (err error) {
	spec := r.crewSpec()
	links, breakers := event.Links{r.signals, r.metrics}, event.Breakers{r.signals, r.metrics}
	if n := r.o.Profile.Workers.Processes; n > 0 {
		r.processes, err = crew.New(crew.Config{
			Base: r.base, Task: r.task(spec), Processes: n, Observer: r.workObserver(), Links: links, Breakers: breakers,
		})
		r.crew = r.processes
		return err
	}
	r.crew, err = crew.NewService(&spec, crew.Surroundings{
		Base: r.base, Driver: r.broker.Driver().WithHeartbeat(spec.Workers.Heartbeat), Pool: r.db.Pool(), Observer: r.workObserver(), Links: links, Breakers: breakers,
	})
	return err
}

func (r *run) crewSpec() crew.Spec {
	p := r.o.Profile
	return crew.Spec{
		RunID: r.o.RunID, Version: r.o.Version, Seed: r.seed, MeasureFrom: leadTime + p.Load.Warmup, Queue: r.plan.Work,
		Routes: workers.Routes{RetryExchange: r.plan.Retry, ParkingExchange: r.plan.DeadLetter, ParkingKey: r.plan.ParkingKey},
		Budget: r.budget(), Tokens: tokens(p.Retry.Tokens), Park: parkVia(p.Topology.ParkVia), Topology: p.Topology, Workers: p.Workers, Inbox: p.Inbox,
	}
}

// task is what worker processes are told of the servers.
func (r *run) task(spec crew.Spec) crew.Task {
	t := crew.Task{Spec: spec, Broker: r.brokerConfig(), Vhost: r.broker.Driver().Vhost()}
	t.Broker.Heartbeat = spec.Workers.Heartbeat
	if r.db.Schema() != "" {
		t.Postgres = r.databaseConfig(r.db.Schema(), handlersConnections(r.o.Profile), "spillway-worker")
	}
	return t
}

func parkVia(way string) workers.Park {
	if way == "reject" {
		return workers.ParkByReject
	}
	return workers.ParkByPublish
}

func tokens(t profile.Tokens) retry.TokenSettings {
	return retry.TokenSettings{Ratio: t.Ratio, Floor: t.Floor, Defer: t.Over == profile.OverDefer}
}

func (r *run) budget() retry.Budget {
	p := &r.o.Profile.Retry
	b := retry.Budget{Attempts: p.Attempts, UnknownAttempts: p.UnknownAttempts, MaxAge: p.MaxAge}
	for _, t := range r.plan.Tiers {
		tier := retry.Tier{Name: t.Name}
		for _, q := range t.Queues {
			tier.Routes = append(tier.Routes, retry.Route{Key: q.RoutingKey, Delay: q.Delay, Most: q.Most})
		}
		b.Tiers = append(b.Tiers, tier)
	}
	return b
}

// pool returns the state of the pool that the handlers use, or of all pools together.
func (r *run) pool() postgres.PoolStats {
	if r.processes != nil {
		return r.processes.Pool()
	}
	return r.db.PoolStats()
}

// crewCPU is the processor time of worker processes.
func (r *run) crewCPU() time.Duration {
	if r.processes == nil {
		return 0
	}
	return r.processes.CPU()
}

// workersFault is a fault of the workers.
func (r *run) workersFault(f profile.Fault) fault.Fault {
	switch f.Kind {
	case fault.KindWorkersKill:
		return &fault.Repeated{
			Name: f.Kind, Times: f.Times, For: f.For, Counts: r.redeliveryMarks,
			Do: func(ctx context.Context) (bool, error) { return r.processes.KillAt(ctx, workers.Point(f.Point)) },
		}
	case fault.KindWorkersFreeze:
		return r.workersFreeze()
	default:
		window := crew.Shares(f.Fail)
		return &fault.WorkersFail{
			Open: func() { r.crew.Open(window) }, Close: r.crew.Close, Simulated: r.crew.Simulated,
		}
	}
}

func (r *run) redeliveryMarks() []fault.Mark {
	return append(r.reconnectMarks(), fault.Mark{Name: "redelivered", Value: float64(r.ledger.Counts().Redelivered)})
}

// workersFreeze stops one process of workers. What it holds, and what the broker goes on to send it, is trapped until its
// connection is given up.
func (r *run) workersFreeze() fault.Fault {
	silent := func() time.Duration { return 0 }
	return &fault.Held{
		Name: fault.KindWorkersFreeze,
		Hold: func(context.Context) (func(context.Context) error, error) {
			since, release, err := r.processes.Freeze()
			if err != nil {
				return nil, err
			}
			silent = since
			return func(context.Context) error {
				until := since() // and not what it is after it has told again
				silent = func() time.Duration { return until }
				return release()
			}, nil
		},
		Ping: func(context.Context) error { return nil },
		Counts: func() []fault.Mark {
			return []fault.Mark{
				{Name: "redelivered", Value: float64(r.ledger.Counts().Redelivered)}, {Name: "silent_seconds", Value: silent().Seconds()},
			}
		},
	}
}
