package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"spillway/internal/broker/rabbit"
	"spillway/internal/experiment"
	"spillway/internal/fault"
	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/internal/stack"
	"spillway/internal/topology"
)

// diagnosis is what the doctor finds out. It is used by one goroutine.
type diagnosis struct {
	app     *app
	flags   serverFlags
	profile *profile.Profile
	checks  []check

	usable     bool // servers of our own could be had
	servers    experiment.Servers
	driver     *rabbit.Driver     // nil when there is no broker to ask
	management *rabbit.Management // nil without
	db         *postgres.DB       // nil when there is no database to ask
}

func (d *diagnosis) add(checks ...check) { d.checks = append(d.checks, checks...) }

func (d *diagnosis) close() {
	if d.db != nil {
		d.db.Close()
	}
	if d.management != nil {
		d.management.Close()
	}
}

// examine fills in the checks. An error is one of use: a flag that makes no sense.
func (d *diagnosis) examine(ctx context.Context) error {
	needed := d.flags.missing(d.profile)
	d.sources(ctx, needed)
	given, err := d.app.given(d.flags, d.profile)
	if err != nil {
		return err
	}
	d.servers = given
	if err := d.attach(ctx, needed); err != nil {
		return err
	}
	if d.clients() && d.allowed() {
		d.broker(ctx)
		d.database(ctx)
	} else {
		d.driver, d.management = nil, nil // nor is anything asked later
	}
	d.faults()
	d.host(ctx)
	return nil
}

// sources lists where servers of our own could come from. One is needed, unless all were given or a stack is up: attach says so.
func (d *diagnosis) sources(ctx context.Context, needed []string) {
	candidates := stack.Describe(ctx, stack.Options{Services: needed, Root: d.flags.root, Source: stack.Source(d.flags.source)})
	d.usable = slices.ContainsFunc(candidates, stack.Candidate.Usable)
	for _, c := range candidates {
		detail := c.Detail
		if !c.Usable() {
			detail = c.Err.Error()
		}
		one := found("servers", string(c.Source), c.Usable(), detail, "")
		d.add(one.optional(false))
	}
}

// attach uses the stack that is up for what was not given. Without one, a source is needed.
func (d *diagnosis) attach(ctx context.Context, needed []string) error {
	if len(needed) == 0 {
		return nil
	}
	remote, up, err := stack.AttachRemote(ctx)
	if err != nil {
		return environmentError(err)
	}
	if !up && !d.usable {
		d.add(found("servers", "any source", false, "no source serves on this machine, and no stack is up",
			"run `spillway stack setup` as root or with sudo, start a Docker engine, or give --uri and --postgres"))
		return nil
	}
	if !up {
		d.add(check{"servers", "stack", checkOK, "none is up; a run starts what was not given and stops it again", ""})
		return nil
	}
	d.add(check{"servers", "stack", checkOK, fmt.Sprintf("up: %v", remote.Versions()), ""})
	complete(&d.servers, &stack.Chosen{Control: remote, Attached: true}, d.flags)
	d.usable = true
	return nil
}

// clients makes what talks to the broker, and reports false when an address is no address. Nothing is dialled yet.
func (d *diagnosis) clients() bool {
	if len(d.servers.Broker.URIs) == 0 {
		return true
	}
	driver, err := rabbit.New(d.servers.Broker)
	if err != nil {
		d.add(found("broker", "address", false, err.Error(), "correct --uri"))
		return false
	}
	d.driver = driver
	if d.servers.Management.URL == "" {
		return true
	}
	if d.management, err = rabbit.NewManagement(d.servers.Management); err != nil {
		d.add(found("broker", rabbit.CheckManagement, false, err.Error(), "correct --management"))
		return false
	}
	return true
}

// allowed says whether every host may be touched, by the rule of a run; nothing is sent to one that may not.
func (d *diagnosis) allowed() bool {
	var hosts []string
	if d.driver != nil {
		hosts = d.driver.Hosts()
	}
	if d.management != nil {
		hosts = append(hosts, d.management.Hosts()...)
	}
	if d.servers.Postgres != "" {
		database, err := postgres.Hosts(d.servers.Postgres)
		if err != nil {
			d.add(found("database", "address", false, err.Error(), "correct --postgres"))
			return false
		}
		hosts = append(hosts, database...)
	}
	err := experiment.CheckHosts(hosts, d.flags.allowHosts)
	if err != nil {
		d.add(found("servers", "hosts", false, err.Error(), ""))
	}
	return err == nil
}

// broker asks the broker, when there is one to ask.
func (d *diagnosis) broker(ctx context.Context) {
	if d.driver == nil {
		return
	}
	for _, c := range rabbit.Doctor(ctx, d.driver, d.management) {
		d.add(found("broker", c.Name, c.OK, c.Detail, c.Fix).optional(d.needs(c.Name)))
	}
}

// needs reports whether the profile cannot do without what a check of the broker is about.
func (d *diagnosis) needs(name string) bool {
	t := &d.profile.Topology
	switch name {
	case rabbit.CheckManagement:
		return t.Management != rabbit.ManagementNone
	case rabbit.CheckTags:
		return t.Isolation == rabbit.IsolationVhost || t.Declare == topology.DeclarePolicy
	case rabbit.CheckPlugins: // the broker's own metrics are a bonus
		return false
	default:
		return true
	}
}

// database asks the database, when there is one to ask.
func (d *diagnosis) database(ctx context.Context) {
	if d.servers.Postgres == "" || !d.profile.NeedsDatabase() {
		return
	}
	var err error
	d.db, err = postgres.Open(ctx, postgres.Config{
		URI: d.servers.Postgres, MaxConns: experiment.DatabaseConnections(d.profile), ApplicationName: "spillway doctor",
	})
	if err != nil {
		d.add(found("database", "answers", false, err.Error(), ""))
		return
	}
	for _, c := range d.db.Doctor(ctx) {
		d.add(found("database", c.Name, c.OK, c.Detail, c.Fix))
	}
}

// faults lists which can be had; one that the profile has is needed.
func (d *diagnosis) faults() {
	for _, kind := range profile.FaultKinds() {
		planned := slices.ContainsFunc(d.profile.Faults, func(f profile.Fault) bool { return f.Kind == kind.Name })
		detail, fix := kind.Doc, ""
		err := d.faultAvailable(kind)
		if err != nil {
			detail, fix = err.Error(), ""
		}
		d.add(found("faults", kind.Name, err == nil, detail, fix).optional(planned))
	}
}

var errNoServersOfOurOwn = errors.New("no source of servers serves on this machine")

func (d *diagnosis) faultAvailable(kind profile.FaultKind) error {
	given := map[string]bool{"": false, stack.PostgreSQL: d.flags.postgres != "", stack.RabbitMQ: len(d.flags.uris) > 0}[kind.Service]
	obstacle := experiment.FaultObstacle(d.profile, profile.Fault{Kind: kind.Name})
	switch {
	case obstacle != "":
		return (&fault.Held{Unavailable: obstacle}).Available()
	case kind.Name == profile.FaultCloseConnections && d.driver != nil && d.management == nil && d.servers.Control == nil:
		return (&fault.Repeated{Unavailable: fault.NoWayToClose}).Available()
	case kind.Service == "":
		return nil
	case given:
		return (&fault.ServerFault{Server: fault.Server{Service: kind.Service}}).Available()
	case d.servers.Control == nil && !d.usable: // a run would start its own
		return errNoServersOfOurOwn
	default:
		return nil
	}
}
