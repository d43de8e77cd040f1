package experiment

import (
	"context"
	"fmt"
	"slices"

	"spillway/internal/broker/rabbit"
	"spillway/internal/fault"
	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/internal/topology"
	"spillway/workers/inbox"
)

// schemaPrefix starts the name of every schema of a run, so that leftovers are found.
const schemaPrefix = "spillway_"

// connsBesideHandlers are the pool's connections beyond one for each handler: statistics, audit and the fault's ping.
const connsBesideHandlers = 3

// DatabaseConnections returns how many connections to the database a run of the profile opens at most.
func DatabaseConnections(p *profile.Profile) int {
	if !p.NeedsDatabase() {
		return 0
	}
	if n := p.Workers.Processes; n > 0 {
		return n*handlersConnections(p) + connsBesideHandlers
	}
	return handlersConnections(p) + connsBesideHandlers
}

// handlersConnections returns how many connections the handlers of one process use at most.
func handlersConnections(p *profile.Profile) int {
	if p.Inbox.Strategy == inbox.StrategyBatch { // handlers wait for a lane, and only lanes work on the database
		return p.Inbox.Batch.Lanes
	}
	n := max(1, p.Workers.Processes)
	return (p.Workers.Count + n - 1) / n * p.Workers.Concurrency
}

// preflight finds everything that would keep the run from its load, before anything is made on a server.
func (r *run) preflight(ctx context.Context) error {
	if err := r.makeDir(); err != nil {
		return err
	}
	if err := r.reach(ctx); err != nil { // after the folder: it is the cheaper question
		return err
	}
	plan, err := topology.Build(r.topologySettings())
	if err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	r.plan = plan
	return nil
}

// reach connects to the servers, so that what is wrong with them is said in one sentence before anything is made.
func (r *run) reach(ctx context.Context) error {
	r.brokerLink, r.databaseLink = r.link(profile.TargetBroker), r.link(profile.TargetDatabase)
	driver, err := rabbit.New(r.brokerConfig())
	if err != nil {
		return environment("broker: %w", err)
	}
	r.admin = driver
	if r.o.Servers.Management.URL != "" {
		if r.management, err = rabbit.NewManagement(r.o.Servers.Management); err != nil {
			return environment("%w", err)
		}
	}
	if err := r.checkHosts(); err != nil {
		return err
	}
	if r.product, r.brokerAt, err = driver.Server(ctx); err != nil {
		return environment("broker: %w", err)
	}
	if err := r.checkStrategy(); err != nil {
		return err
	}
	if err := r.checkNodes(ctx); err != nil {
		return err
	}
	r.db, err = r.openDatabase(ctx)
	return err
}

// delayedRetrySince is the first version that takes the policy: 4.3.0 refuses its keys, and older ones ignore them (ran, 3.10.8).
var delayedRetrySince = [...]int{4, 3, 1}

// checkStrategy refuses a strategy that the broker does not have.
func (r *run) checkStrategy() error {
	if r.o.Profile.Topology.Strategy != profile.StrategyDelayedRetry {
		return nil
	}
	var version [3]int
	if n, _ := fmt.Sscanf(r.brokerAt, "%d.%d.%d", &version[0], &version[1], &version[2]); n == 3 && slices.Compare(version[:], delayedRetrySince[:]) >= 0 {
		return nil
	}
	return environment("topology.strategy delayed-retry: %w: it needs RabbitMQ 4.3.1 or later, and this one is %s; set another strategy, such as ttl-tiers",
		fault.ErrUnavailable, r.brokerAt)
}

// checkNodes refuses a cluster that is smaller than the profile needs.
func (r *run) checkNodes(ctx context.Context) error {
	need := r.o.Profile.Topology.Nodes
	if need <= 1 {
		return nil
	}
	nodes, err := r.management.Nodes(ctx)
	if err != nil {
		return environment("how many nodes the broker has is not known: %w", err)
	}
	if len(nodes) < need {
		return environment("%w: the broker has %d of the %d nodes that topology.nodes asks for; leave --uri out, or start a cluster with "+
			"`spillway stack up --nodes %d`", fault.ErrUnavailable, len(nodes), need, need)
	}
	return nil
}

// brokerConfig returns how to reach the broker. A closed load looks for a ceiling and its latencies are no answer to anything,
// so it may read in larger portions, which costs latency and saves half of the CPU time.
func (r *run) brokerConfig() rabbit.Config {
	c := r.o.Servers.Broker
	if r.o.Profile.Load.Closed() {
		c.Gather = rabbit.GatherDelay
	}
	if r.brokerLink != nil {
		c.Dial = r.brokerLink.Dial
	}
	return c
}

// checkHosts refuses to load a machine that was not named on purpose.
func (r *run) checkHosts() error {
	hosts := r.admin.Hosts()
	if r.management != nil {
		hosts = append(hosts, r.management.Hosts()...)
	}
	if r.o.Profile.NeedsDatabase() {
		database, err := postgres.Hosts(r.o.Servers.Postgres)
		if err != nil {
			return environment("database: %w", err)
		}
		hosts = append(hosts, database...)
	}
	return CheckHosts(hosts, r.o.AllowHosts)
}

// CheckHosts refuses the first host that is not this machine and was not named on purpose; the error wraps ErrEnvironment.
func CheckHosts(hosts, allowed []string) error {
	for _, host := range hosts {
		if !rabbit.IsLoopback(host) && !slices.Contains(allowed, host) {
			return environment("host %q is not on this machine; a load test can stop a server that others use: "+
				"give --allow-host %s if you mean it", host, host)
		}
	}
	return nil
}

func (r *run) topologySettings() topology.Settings {
	t := &r.o.Profile.Topology
	major, _, _ := rabbit.MajorMinor(r.brokerAt)
	return topology.Settings{
		Prefix: r.prefix(), Strategy: t.Strategy, DelayedRetryType: t.DelayedRetryType, Shards: t.Shards, DeadLetterStrategy: t.DeadLetterStrategy, DeliveryLimit: t.DeliveryLimit, DeliveryLimitTo: t.DeliveryLimitTo,
		ConsumerTimeout: t.ConsumerTimeout, MaxLength: t.MaxLength, ReturnVia: t.ReturnVia, ParkVia: t.ParkVia, ParkingRetention: t.ParkingRetention,
		Tiers: t.Tiers, Jitter: t.Jitter, TimeScale: t.TimeScale, Declare: t.Declare, BrokerMajor: major,
		Events: r.o.Profile.RelaysEvents(),
	}
}

// prefix returns what the names start with: with isolation by prefix and none given, the run's own.
func (r *run) prefix() string {
	t := &r.o.Profile.Topology
	if t.Isolation == "prefix" && t.Prefix == "" {
		return "spillway-" + r.o.RunID
	}
	return t.Prefix
}
