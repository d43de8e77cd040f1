package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit"
	"spillway/internal/crew"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/internal/redrive"
	"spillway/internal/timebase"
	"spillway/internal/topology"
)

// Parking is the parking lot of a run that was kept, or of anybody's topology.
type Parking struct {
	Servers Servers
	Vhost   string // "" is that of the address
	From    string // the parking lot
	To      string // the work queue

	// Of a kept run; Profile is nil otherwise.
	Profile *profile.Profile
	RunID   string
	Seed    uint64
	Version string
	plan    *topology.Plan
}

// ParkingOf returns the parking lot of a run that was kept. Broker is the version of the run's broker.
func ParkingOf(p *profile.Profile, runID, brokerVersion string, seed uint64, s Servers) (Parking, error) {
	r := &run{o: Options{Profile: p, RunID: runID}, brokerAt: brokerVersion}
	plan, err := topology.Build(r.topologySettings())
	if err != nil {
		return Parking{}, fmt.Errorf("topology: %w", err)
	}
	out := Parking{Servers: s, From: plan.Parking, To: plan.Work, Profile: p, RunID: runID, Seed: seed, plan: plan}
	if p.Topology.Isolation == rabbit.IsolationVhost {
		out.Vhost = rabbit.VhostOf(runID)
	}
	return out, nil
}

// Worked is what came of messages that were worked off after a redrive.
type Worked struct{ Applied, Refused, Duplicates, Retried, Parked int64 }

// Redrive moves messages back, see redrive.Run. With work, the workers of the run's profile work them off beside it, until the work
// queue and the tiers are empty and nothing is held.
func (p *Parking) Redrive(ctx context.Context, o redrive.Options, work bool) (redrive.Summary, Worked, error) {
	driver, err := rabbit.New(p.Servers.Broker)
	if err != nil {
		return redrive.Summary{}, Worked{}, environment("broker: %w", err)
	}
	if p.Vhost != "" {
		driver = driver.WithVhost(p.Vhost)
	}
	if _, _, err := driver.Server(ctx); err != nil {
		return redrive.Summary{}, Worked{}, environment("broker: %w", err)
	}
	admin := rabbit.NewAdmin(driver)
	defer admin.Close()
	o.Driver, o.From, o.To = driver, p.From, p.To
	o.Ready = func(ctx context.Context) (int, error) {
		depth, err := admin.Depth(ctx, p.From)
		return depth.Ready, err
	}
	if !work {
		sum, err := redrive.Run(ctx, o)
		return sum, Worked{}, err
	}
	return p.redriveAndWork(ctx, o, driver, admin)
}

func (p *Parking) redriveAndWork(ctx context.Context, o redrive.Options, driver *rabbit.Driver, admin *rabbit.Admin) (sum redrive.Summary, done Worked, err error) {
	db, err := postgres.Open(ctx, postgres.Config{
		URI: p.Servers.Postgres, Schema: schemaPrefix + p.RunID, MaxConns: handlersConnections(p.Profile) + 1, ApplicationName: "spillway-redrive",
	})
	if err != nil {
		return sum, done, environment("database: %w", err)
	}
	defer db.Close()
	r := &run{o: Options{Profile: p.Profile, RunID: p.RunID, Version: p.Version}, seed: p.Seed, plan: p.plan}
	count := &workCount{}
	spec := r.crewSpec()
	service, err := crew.NewService(&spec, crew.Surroundings{
		Base: timebase.New(), Driver: driver, Pool: db.Pool(), Observer: count, Links: event.NopLinks{}, Breakers: event.Breakers{},
	})
	if err != nil {
		return sum, done, err
	}
	serving, hardStop := context.WithCancel(context.WithoutCancel(ctx))
	defer hardStop()
	var group errgroup.Group
	group.Go(func() error { return service.Run(serving) })
	sum, err = redrive.Run(ctx, o)
	err = errors.Join(err, workedOff(ctx, admin, r.plan, count))
	service.Stop()
	timer := time.AfterFunc(stopTimeout, hardStop)
	defer timer.Stop()
	return sum, count.worked(), errors.Join(err, group.Wait())
}

// workedOff waits until the work queue and the tiers are empty and nothing is held.
func workedOff(ctx context.Context, admin *rabbit.Admin, plan *topology.Plan, count *workCount) error {
	for still := 0; still < int(redriveStill/drainPoll); still++ {
		busy := count.held() > 0
		for _, name := range plan.QueueNames() {
			if name == plan.Parking || name == plan.EventsQueue {
				continue
			}
			depth, err := admin.Depth(ctx, name)
			if err != nil {
				return err
			}
			busy = busy || depth.Ready > 0
		}
		if busy {
			still = 0
		}
		if !broker.Wait(ctx, drainPoll) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// workCount counts what workers do.
type workCount struct {
	event.NopWork
	delivered, settled, retried, parked atomic.Int64
	results                             [event.UnknownError + 1]atomic.Int64
}

// Delivered implements event.WorkObserver.
func (c *workCount) Delivered(event.Delivered) { c.delivered.Add(1) }

// Handled implements event.WorkObserver.
func (c *workCount) Handled(e event.Handled) { c.results[e.Result].Add(1) }

// Retried implements event.WorkObserver.
func (c *workCount) Retried(event.Retried) { c.retried.Add(1) }

// Parked implements event.WorkObserver.
func (c *workCount) Parked(event.Parked) { c.parked.Add(1) }

// Released implements event.WorkObserver.
func (c *workCount) Released(int64, time.Duration) { c.settled.Add(1) }

// Acked implements event.WorkObserver.
func (c *workCount) Acked(n int, _ time.Duration) { c.settled.Add(int64(n)) }

func (c *workCount) held() int64 { return c.delivered.Load() - c.settled.Load() }

func (c *workCount) worked() Worked {
	return Worked{
		Applied: c.results[event.Applied].Load(), Refused: c.results[event.Refused].Load(), Duplicates: c.results[event.Duplicate].Load(),
		Retried: c.retried.Load(), Parked: c.parked.Load(),
	}
}
