// Package crew is the workers of a run: what they need to know (Spec), in this process (NewService) or in processes of their own,
// which are children of this one (Processes).
//
// A child is the same program. It reads what it is to do from its standard input, so that no address or password shows in its
// arguments or its environment, and writes every event of its workers to its standard output; the parent hands them to the
// run's observers, so a run sees the same whichever process its workers live in. Children end with the parent: the kernel ends
// them where it can (Linux), and the end of their input does everywhere.
package crew

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/profile"
	"spillway/internal/timebase"
	"spillway/workers"
	"spillway/workers/breaker"
	"spillway/workers/inbox"
	"spillway/workers/retry"
	"spillway/workers/service"
)

// Spec says how the workers of a run work.
type Spec struct {
	RunID       string
	Version     string // of this build
	Seed        uint64
	MeasureFrom time.Duration // messages due before it are warm-up
	Queue       string
	Routes      workers.Routes
	Budget      retry.Budget
	Tokens      retry.TokenSettings
	Park        workers.Park
	Topology    profile.Topology
	Workers     profile.Workers
	Inbox       profile.Inbox
	First       int // number of the first worker; Workers.Count of them follow
}

// Surroundings are what a service works with in its own process.
type Surroundings struct {
	Base     *timebase.Base
	Driver   broker.Driver
	Pool     *pgxpool.Pool // nil without a database
	Observer event.WorkObserver
	Links    event.LinkObserver
	Breakers event.BreakerObserver
	Reached  func(workers.Point, int64) // nil is nobody
}

// Service is the workers of one process, and what a fault may change of them.
type Service struct {
	*workers.Service
	*workers.Failing
	inbox inbox.Inbox
}

// Run runs the workers as workers.Service does, and lets go of the inbox after that.
func (s *Service) Run(ctx context.Context) error {
	err := s.Service.Run(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, inbox.Close(closing, s.inbox))
}

// NewService makes the workers of one process.
func NewService(s *Spec, in Surroundings) (*Service, error) {
	w := &s.Workers
	times, err := service.NewTime(w.Service.Distribution, w.Service.Mean, w.Service.Min, w.Service.Max, w.Service.Sigma, s.Seed)
	if err != nil {
		return nil, fmt.Errorf("service time: %w", err)
	}
	box, err := inbox.New(s.Inbox.Strategy, in.Pool, inbox.WithBatch(inbox.BatchOptions{
		Size: s.Inbox.Batch.Size, Linger: s.Inbox.Batch.Linger, Lanes: s.Inbox.Batch.Lanes,
	}))
	if err != nil {
		return nil, err
	}
	out := &Service{Failing: workers.NewFailing(Shares(w.Fail), s.Seed), inbox: box}
	out.Service = workers.New(workers.Config{
		Base: in.Base, Driver: in.Driver, Version: s.Version, MeasureFrom: s.MeasureFrom, Seed: s.Seed, Run: s.RunID, Queue: s.Queue,
		Workers: w.Count, First: s.First, Prefetch: w.Prefetch, Concurrency: w.Concurrency, AckBatch: w.AckBatch, AckInterval: w.AckInterval,
		Ack: ackOf(w.Ack), HandlerTimeout: w.HandlerTimeout, RetryPublishTimeout: w.RetryPublishTimeout, RateLimit: w.RateLimit,
		Breaker: breakerSettings(w.Breaker), Inbox: box, ServiceTime: times, Failing: out.Failing, Budget: &s.Budget, Tokens: s.Tokens, Park: s.Park,
		Again: againBy(&s.Topology), Sleep: s.Topology.Strategy == profile.StrategySleep, Expire: s.Topology.Strategy == profile.StrategyMessageTTL,
		Routes: s.Routes, Reached: in.Reached, Observer: in.Observer, Links: in.Links, Breakers: in.Breakers,
	})
	return out, nil
}

// ackOf returns the point of the ack by its name in profiles.
func ackOf(name string) workers.Ack {
	switch name {
	case profile.AckBeforeCommit:
		return workers.AckBeforeCommit
	case profile.AckOnDelivery:
		return workers.AckOnDelivery
	case profile.AckAuto:
		return workers.AckAuto
	default:
		return workers.AckAfterCommit
	}
}

// againBy returns how a message comes back under the profile's strategy.
func againBy(t *profile.Topology) workers.Again {
	switch {
	case t.Copies():
		return workers.AgainByCopy
	case t.ReturnBy == profile.ReturnByNack:
		return workers.AgainByNack
	default:
		return workers.AgainByReject
	}
}

func breakerSettings(b profile.Breaker) *breaker.Settings {
	if !b.Enabled {
		return nil
	}
	return &breaker.Settings{
		FailureRatio: b.FailureRatio, Window: b.Window, MinSamples: b.MinSamples, OpenFor: b.OpenFor, Probes: b.HalfOpenProbes,
	}
}

// Shares turns a profile's failure shares into the model's.
func Shares(f profile.Fail) service.Shares {
	return service.Shares{Transient: f.Transient, Permanent: f.Permanent, Refused: f.Refused, Dies: f.Dies, Unknown: f.Unknown}
}

// split deals the workers of a spec out to n processes, as evenly as it goes.
func (s *Spec) split(n int) []Spec {
	out := make([]Spec, n)
	first := s.First
	for i := range out {
		out[i] = *s
		out[i].Workers.Count = s.Workers.Count/n + min(1, max(0, s.Workers.Count%n-i))
		out[i].Workers.RateLimit = s.Workers.RateLimit * float64(out[i].Workers.Count) / float64(s.Workers.Count)
		out[i].Tokens.Floor = s.Tokens.Floor * float64(out[i].Workers.Count) / float64(s.Workers.Count)
		out[i].First = first
		first += out[i].Workers.Count
	}
	return out
}
