package cli

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"spillway/internal/broker/rabbit"
)

// Beginnings of names that runs give.
const (
	schemasOfRuns  = "spillway_" // of every schema
	policiesOfRuns = "spillway." // of every policy, before the name of its queue
)

// runName matches what follows the prefix of a run's virtual host or schema: the run id, see newRunID. Others that happen
// to start alike are nobody's leftovers.
var runName = regexp.MustCompile(`^(\d{8}t\d{6})-[0-9a-f]{4}$`)

// youngest is the age from which a run without connections counts as gone. The broker knows a connection 5 s after it
// was opened at the latest; a run makes its first well within the rest.
const youngest = time.Minute

// leftovers is what runs that are gone have left on the servers.
type leftovers struct {
	vhosts  []string
	named   []remain // in the virtual host of the address, by runs with isolation prefix
	schemas []string
}

// remain is a queue, exchange or policy.
type remain struct{ kind, name string }

// leftovers looks for them on the servers that were reached.
func (d *diagnosis) leftovers(ctx context.Context) (leftovers, error) {
	var gone leftovers
	var err error
	if d.management != nil && !d.isMissing("broker") {
		if gone.vhosts, err = d.leftVhosts(ctx); err != nil {
			return gone, err
		}
		if gone.named, err = d.leftNames(ctx); err != nil {
			return gone, err
		}
	}
	if d.db != nil {
		gone.schemas, err = d.leftSchemas(ctx)
	}
	return gone, err
}

// isMissing reports whether a check of an area has said already that it does not work.
func (d *diagnosis) isMissing(area string) bool {
	return slices.ContainsFunc(d.checks, func(c check) bool { return c.Area == area && c.Condition == checkMissing })
}

// leftNames returns what runs by prefix have left in the virtual host of the address, unless a queue of theirs has a
// consumer.
func (d *diagnosis) leftNames(ctx context.Context) ([]remain, error) {
	busy := map[string]bool{} // by run id
	var all []remain
	for _, kind := range [...]string{rabbit.KindQueues, rabbit.KindExchanges, rabbit.KindPolicies} {
		prefix := rabbit.VhostPrefix
		if kind == rabbit.KindPolicies {
			prefix = policiesOfRuns + prefix
		}
		names, err := d.management.Named(ctx, kind, d.driver.Vhost(), prefix)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			id := runOf(name)
			if !oldRun(id, time.Now()) {
				continue
			}
			all = append(all, remain{kind, name})
			if kind == rabbit.KindQueues {
				q, err := d.management.Queue(ctx, d.driver.Vhost(), name)
				busy[id] = busy[id] || err != nil || q.Consumers > 0
			}
		}
	}
	return slices.DeleteFunc(all, func(r remain) bool { return busy[runOf(r.name)] }), nil
}

// runOf returns the run id in a name that a run by prefix has given: "spillway-<id>.inventory.orders", and with
// policiesOfRuns before it for a policy.
func runOf(name string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, policiesOfRuns), rabbit.VhostPrefix), ".")
	return id
}

// leftSchemas returns the schemas of runs that no session works on.
func (d *diagnosis) leftSchemas(ctx context.Context) ([]string, error) {
	all, err := d.db.Leftovers(ctx, schemasOfRuns)
	return slices.DeleteFunc(all, func(schema string) bool {
		return !oldRun(strings.TrimPrefix(schema, schemasOfRuns), time.Now())
	}), err
}

// leftVhosts returns the virtual hosts of runs that nobody is connected to.
func (d *diagnosis) leftVhosts(ctx context.Context) ([]string, error) {
	all, err := d.management.ListVhosts(ctx, rabbit.VhostPrefix)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, vhost := range all {
		if !oldRun(strings.TrimPrefix(vhost, rabbit.VhostPrefix), time.Now()) {
			continue
		}
		connections, err := d.management.Connections(ctx, vhost)
		if err != nil {
			return nil, err
		}
		if connections == 0 {
			gone = append(gone, vhost)
		}
	}
	return gone, nil
}

// oldRun reports whether a name is a run id, and one of a run that began long enough ago.
func oldRun(name string, now time.Time) bool {
	parts := runName.FindStringSubmatch(name)
	if parts == nil {
		return false
	}
	began, err := time.Parse("20060102t150405", parts[1])
	return err == nil && now.Sub(began) >= youngest
}

// remove deletes them, and goes on after an error.
func (l leftovers) remove(ctx context.Context, d *diagnosis) error {
	var problems []error
	for _, vhost := range l.vhosts {
		problems = append(problems, d.management.DeleteVhost(ctx, vhost))
	}
	for _, r := range l.named {
		problems = append(problems, d.management.DeleteNamed(ctx, r.kind, d.driver.Vhost(), r.name))
	}
	for _, schema := range l.schemas {
		problems = append(problems, d.db.DropLeftover(ctx, schema))
	}
	return errors.Join(problems...)
}

func (l leftovers) check(removed bool) check {
	c := check{Area: "servers", Name: "leftovers", Condition: checkOK, Detail: "none"}
	var lists []string
	for _, one := range []struct {
		what  string
		names []string
	}{{"virtual host", l.vhosts}, {"name", l.names()}, {"schema", l.schemas}} {
		if len(one.names) > 0 {
			lists = append(lists, plural(len(one.names), one.what)+": "+strings.Join(one.names, ", "))
		}
	}
	if len(lists) == 0 {
		return c
	}
	c.Detail = strings.Join(lists, "; ")
	if removed {
		c.Detail = "removed " + c.Detail
		return c
	}
	c.Condition, c.Fix = checkNote, "spillway doctor --clean removes them"
	return c
}

// names writes what was left by prefix as "queues spillway-...".
func (l leftovers) names() []string {
	names := make([]string, len(l.named))
	for i, r := range l.named {
		names[i] = r.kind + " " + r.name
	}
	return names
}
