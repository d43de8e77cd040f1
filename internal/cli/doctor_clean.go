package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"spillway/internal/broker/rabbit"
)

// schemasOfRuns starts the name of every schema that a run makes.
const schemasOfRuns = "spillway_"

// runName matches what follows the prefix of a run's virtual host or schema: the run id, see newRunID. Others that happen
// to start alike are nobody's leftovers.
var runName = regexp.MustCompile(`^(\d{8}t\d{6})-[0-9a-f]{4}$`)

// youngest is the age from which a run without connections counts as gone. The broker knows a connection 5 s after it
// was opened at the latest; a run makes its first well within the rest.
const youngest = time.Minute

// leftovers is what runs that are gone have left on the servers.
type leftovers struct {
	vhosts  []string
	schemas []string
}

// leftovers looks for them on the servers that were reached.
func (d *diagnosis) leftovers(ctx context.Context) (leftovers, error) {
	var gone leftovers
	var err error
	if d.management != nil {
		if gone.vhosts, err = d.leftVhosts(ctx); err != nil && !d.isMissing("broker") {
			return gone, err
		}
	}
	if d.db != nil {
		gone.schemas, err = d.leftSchemas(ctx)
		return gone, err
	}
	return gone, nil
}

// leftSchemas returns the schemas of runs that no session works on.
func (d *diagnosis) leftSchemas(ctx context.Context) ([]string, error) {
	all, err := d.db.Leftovers(ctx, schemasOfRuns)
	return slices.DeleteFunc(all, func(schema string) bool {
		return !oldRun(strings.TrimPrefix(schema, schemasOfRuns), time.Now())
	}), err
}

// isMissing reports whether a check of an area has said already that it does not work.
func (d *diagnosis) isMissing(area string) bool {
	for _, c := range d.checks {
		if c.Area == area && c.Condition != checkOK {
			return true
		}
	}
	return false
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
	for _, schema := range l.schemas {
		problems = append(problems, d.db.DropLeftover(ctx, schema))
	}
	return errors.Join(problems...)
}

func (l leftovers) check(removed bool) check {
	c := check{Area: "servers", Name: "leftovers", Condition: checkOK, Detail: "none"}
	if len(l.vhosts)+len(l.schemas) == 0 {
		return c
	}
	c.Detail = fmt.Sprintf("%s: %s; %s: %s", plural(len(l.vhosts), "virtual host"), strings.Join(l.vhosts, ", "),
		plural(len(l.schemas), "schema"), strings.Join(l.schemas, ", "))
	if removed {
		c.Detail = "removed " + c.Detail
		return c
	}
	c.Condition, c.Fix = checkNote, "spillway doctor --clean removes them"
	return c
}
