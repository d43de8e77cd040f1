package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spillway/internal/profile"
	"spillway/profiles"
)

// Conditions of a check.
const (
	checkOK      = "ok"
	checkMissing = "missing" // needed, and not there: a run would not start
	checkNote    = "note"    // not as it could be, and not needed
)

// check is one thing that the doctor looked at.
type check struct {
	Area      string `json:"area"`
	Name      string `json:"name"`
	Condition string `json:"condition"`
	Detail    string `json:"detail"`
	Fix       string `json:"fix,omitempty"`
}

// found makes a check of something that a run needs.
func found(area, name string, ok bool, detail, fix string) check {
	if ok {
		return check{area, name, checkOK, detail, ""}
	}
	return check{area, name, checkMissing, detail, fix}
}

// optional turns a missing thing into a note when it is not needed.
func (c check) optional(needed bool) check {
	if c.Condition == checkMissing && !needed {
		c.Condition = checkNote
	}
	return c
}

// doctorFlags are the flags of "doctor".
type doctorFlags struct {
	servers serverFlags
	profile string
	clean   bool
	asJSON  bool
}

// doctorProfile is the profile that the needs are taken from when none is named: everything at its default.
const doctorProfile = "steady"

func (a *app) newDoctor() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine and the servers can do, and what a run is missing",
		Long: `Look at everything that a run needs and print one line for each: where servers can come from, the broker's version,
rights, plugins, feature flags and alarms, the database's version, rights and connections, the faults that are available,
and this machine. The servers are those of --uri and --postgres, else a stack that is up; servers that a run would start
itself are not started for this.

Exit codes: 0 when all that is needed is there, 6 when something is missing.`,
		Example: `  spillway doctor
  spillway doctor --uri amqp://user@localhost/ --postgres postgres://user@localhost/postgres --profile outage
  spillway doctor --clean`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.profile, "profile", doctorProfile, "profile whose needs count: a file or the name of a built-in one")
	flags.BoolVar(&f.clean, "clean", false, "remove the virtual hosts and schemas of runs that are gone")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	f.servers.register(flags, a.getenv)
	_ = cmd.RegisterFlagCompletionFunc("profile", completeProfiles) // fails only for an unknown flag
	return cmd
}

func (a *app) doctor(ctx context.Context, f *doctorFlags) error {
	p, err := doctorNeeds(f.profile)
	if err != nil {
		return err
	}
	d := &diagnosis{app: a, flags: f.servers, profile: p}
	defer d.close()
	if err := d.examine(ctx); err != nil {
		return err
	}
	gone, err := d.leftovers(ctx)
	if err != nil {
		return environmentError(err)
	}
	if f.clean {
		err = gone.remove(ctx, d)
	}
	d.add(gone.check(f.clean && err == nil))
	if err := errors.Join(err, printChecks(a.stdout, d.checks, f.asJSON)); err != nil {
		return environmentError(err)
	}
	return d.verdict()
}

func doctorNeeds(name string) (*profile.Profile, error) {
	source, err := profiles.Resolve(name)
	if err != nil {
		return nil, usageError(err)
	}
	return parseProfile(source, overrides{})
}

// verdict says whether anything is missing; the checks themselves have been printed.
func (d *diagnosis) verdict() error {
	for _, c := range d.checks {
		if c.Condition == checkMissing {
			return exitWith(exitEnvironment)
		}
	}
	return nil
}

func printChecks(w io.Writer, checks []check, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"checks": checks})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(table, "%s\t%s: %s\t%s\n", c.Condition, c.Area, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(table, "\t\t  fix: %s\n", c.Fix)
		}
	}
	return table.Flush()
}
