package rabbit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"spillway/internal/broker"
)

// Check is one finding of Doctor.
type Check struct {
	Name   string
	OK     bool
	Detail string // what was found, one sentence
	Fix    string // what to do about it; "" when OK
}

// Names of checks that not every run needs.
const (
	CheckManagement = "management API"
	CheckTags       = "user tags"
	CheckPlugins    = "plugins"
)

// neededFlags are the feature flags that the topology needs. Newer brokers have them always, and may not list them.
var neededFlags = map[string]string{
	"quorum_queue": "quorum queues",
	"stream_queue": "at-least-once dead-lettering (RabbitMQ 3.10 to 3.11)",
}

// Doctor looks at everything that a run needs of the broker and reports all of it, good and bad. management may be nil.
func Doctor(ctx context.Context, d *Driver, management *Management) []Check {
	checks := []Check{checkServer(ctx, d)}
	if management == nil {
		return append(checks, Check{
			Name: CheckManagement, Detail: "no address was given",
			Fix: "give --management, or run with topology.management none, where some things cannot be audited",
		})
	}
	reach := checkManagement(ctx, management)
	checks = append(checks, reach)
	if !reach.OK {
		return checks
	}
	return append(checks,
		checkTags(ctx, management),
		checkRights(ctx, d, management),
		checkPlugins(ctx, management),
		checkFlags(ctx, management),
		checkAlarms(ctx, management),
	)
}

func checkServer(ctx context.Context, d *Driver) Check {
	c := Check{Name: "broker"}
	product, version, err := d.Server(ctx)
	if err != nil {
		return c.failed(err, "see the sentence before; a run needs RabbitMQ 3.10 or later")
	}
	return c.passed("%s %s at %s", product, version, d)
}

func checkManagement(ctx context.Context, m *Management) Check {
	c := Check{Name: CheckManagement}
	o, err := m.Overview(ctx)
	if err != nil {
		return c.failed(err, "enable the plugin rabbitmq_management and give the user the tag management or more")
	}
	return c.passed("%s %s at %s", o.Product, o.Version, m)
}

// checkTags asks for what makes virtual hosts (administrator) and policies (policymaker).
func checkTags(ctx context.Context, m *Management) Check {
	c := Check{Name: CheckTags}
	tags, err := m.Tags(ctx)
	if err != nil {
		return c.failed(err, "give the user the tag management or more")
	}
	c.Detail = fmt.Sprintf("user %q has %s", m.Username(), strings.Join(tags, ", "))
	if slices.Contains(tags, "administrator") {
		c.OK = true
		return c
	}
	c.Fix = "give the user the tag administrator for isolation vhost, or policymaker for isolation prefix; else use declare arguments with management read"
	return c
}

func checkRights(ctx context.Context, d *Driver, m *Management) Check {
	c := Check{Name: "rights"}
	r, err := m.Rights(ctx, d.Vhost(), d.Username())
	switch {
	case errors.Is(err, ErrNotFound):
		return c.failed(fmt.Errorf("user %q has no rights in virtual host %q", d.Username(), d.Vhost()), rightsFix(d))
	case err != nil:
		return c.failed(err, "give the management user the tag administrator, or check the rights by hand")
	case r.Configure == "" || r.Write == "" || r.Read == "":
		c.Detail = fmt.Sprintf("user %q may configure %q, write %q, read %q in virtual host %q", d.Username(), r.Configure, r.Write, r.Read, d.Vhost())
		c.Fix = rightsFix(d)
		return c
	}
	return c.passed("user %q may configure %q, write %q, read %q in virtual host %q", d.Username(), r.Configure, r.Write, r.Read, d.Vhost())
}

func rightsFix(d *Driver) string {
	return fmt.Sprintf("rabbitmqctl set_permissions -p %q %q '.*' '.*' '.*'", d.Vhost(), d.Username())
}

// What a node says of itself is some seconds old: one that has just started may not have all its plugins yet.
const (
	nodeStatisticsAge  = 6 * time.Second
	nodeStatisticsPoll = 250 * time.Millisecond
)

func checkPlugins(ctx context.Context, m *Management) Check {
	c := Check{Name: CheckPlugins}
	for began := time.Now(); ; {
		nodes, err := m.Nodes(ctx)
		if err != nil {
			return c.failed(err, "give the user the tag monitoring")
		}
		without := slices.IndexFunc(nodes, func(n Node) bool { return n.Running && !slices.Contains(n.Plugins, "rabbitmq_prometheus") })
		if without < 0 {
			return c.passed("rabbitmq_management and rabbitmq_prometheus are enabled on %d nodes", len(nodes))
		}
		if time.Since(began) > nodeStatisticsAge || !broker.Wait(ctx, nodeStatisticsPoll) {
			c.Detail = fmt.Sprintf("node %s has not the plugin rabbitmq_prometheus, which the broker's own metrics come from", nodes[without].Name)
			c.Fix = "rabbitmq-plugins enable rabbitmq_prometheus"
			return c
		}
	}
}

func checkFlags(ctx context.Context, m *Management) Check {
	c := Check{Name: "feature flags"}
	flags, err := m.FeatureFlags(ctx)
	if err != nil {
		return c.failed(err, "give the user the tag administrator")
	}
	var missing []string
	for _, f := range flags {
		if why, needed := neededFlags[f.Name]; needed && f.State != "enabled" {
			missing = append(missing, fmt.Sprintf("%s is %s, needed for %s", f.Name, f.State, why))
		}
	}
	if len(missing) > 0 {
		c.Detail = strings.Join(missing, "; ")
		c.Fix = "rabbitmqctl enable_feature_flag all"
		return c
	}
	return c.passed("all that are needed are enabled")
}

func checkAlarms(ctx context.Context, m *Management) Check {
	c := Check{Name: "alarms"}
	nodes, err := m.Nodes(ctx)
	if err != nil {
		return c.failed(err, "give the user the tag monitoring")
	}
	for _, n := range nodes {
		if n.MemoryAlarm || n.DiskAlarm {
			c.Detail = fmt.Sprintf("node %s has an alarm (memory %v, disk %v): publishers are blocked", n.Name, n.MemoryAlarm, n.DiskAlarm)
			c.Fix = "free memory or disk, or raise vm_memory_high_watermark or lower disk_free_limit"
			return c
		}
	}
	return c.passed("none")
}

func (c Check) passed(format string, args ...any) Check {
	c.OK, c.Detail = true, fmt.Sprintf(format, args...)
	return c
}

func (c Check) failed(err error, fix string) Check {
	c.Detail, c.Fix = err.Error(), fix
	return c
}
