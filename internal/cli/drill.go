package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spillway/internal/drill"
	"spillway/internal/experiment"
	"spillway/internal/fault"
	"spillway/internal/profile"
	"spillway/profiles"
)

// drillFlags are the flags of "drill".
type drillFlags struct {
	servers serverFlags
	sets    []string
	all     bool
	list    bool
	random  int
	seed    uint64
	again   int
	out     string
	json    string
	junit   string
	keep    bool
	quiet   bool
}

func (a *app) newDrill() *cobra.Command {
	var f drillFlags
	cmd := &cobra.Command{
		Use:   "drill NAME... | --all | --random N",
		Short: "Break the path on purpose, and prove what came of every message",
		Long: `Run drills: each is a run under load with an accident in it, and with the conditions under which it passes. They
share servers (those that need a cluster come last) and run one after the other. A drill whose fault left no mark is inconclusive,
and fails; one that this machine cannot run is skipped, with the reason.

Each drill is an ordinary profile: "spillway drill --list" names them, and "spillway run profiles/drills/NAME.yaml", in a
checkout, runs one alone. Random drills draw load, workers, inbox, way of publishing and overlapping faults by their seed, out of
what promises that nothing is lost; the N of them have the seeds from --seed on, so any of them is run again by its own.

Exit codes: 0 all passed, 3 a condition missed, 4 a guarantee broken, 5 inconclusive or all skipped, 6 environment.`,
		Example: `  spillway drill crash-after-commit
  spillway drill --all -o results/drills --junit drills.xml
  spillway drill db-outage-long --keep
  spillway drill --random 10 --seed 1`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return profiles.Drills(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.drill(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "every drill")
	flags.IntVar(&f.random, "random", 0, "so many random drills")
	flags.Uint64Var(&f.seed, "seed", 1, "of the first random drill")
	flags.IntVar(&f.again, "again", 0, "run a drill that proved nothing (inconclusive) again, at most so many times")
	flags.BoolVar(&f.list, "list", false, "say what drills there are, and run none")
	addSetFlag(cmd, &f.sets)
	flags.StringVarP(&f.out, "out", "o", "", "folder for the drills' files, one folder each (default results/drill-<time>)")
	flags.StringVar(&f.json, "json", "", "write the outcomes as JSON to a file; - is standard output, in place of the table")
	flags.StringVar(&f.junit, "junit", "", "write the outcomes as JUnit XML to a file")
	flags.BoolVar(&f.keep, "keep", false, "leave each drill's virtual host and schema on the servers, for a look")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress, only the table")
	f.servers.register(flags, a.getenv)
	return cmd
}

// one is a drill that is to be run.
type one struct {
	name    string
	profile *profile.Profile
}

func (a *app) drill(cmd *cobra.Command, names []string, f *drillFlags) error {
	if f.list {
		return a.listProfiles(profiles.Drills(), profiles.Drill)
	}
	drills, err := chosenDrills(names, f)
	if err != nil {
		return err
	}
	panel := a.newPanel(f.quiet || f.json == "-")
	defer panel.close()
	grounds := &drillGrounds{app: a, flags: f.servers, panel: panel}
	folder := f.out
	if folder == "" {
		folder = filepath.Join("results", "drill-"+newRunID(time.Now()))
	}
	var all []drill.Outcome
	var coverage drill.Coverage
	for i, d := range drills {
		coverage.Cover(d.profile)
		if cmd.Context().Err() != nil {
			break
		}
		panel.say("drill %d of %d: %s", i+1, len(drills), d.name)
		servers, err := grounds.of(cmd.Context(), d.profile)
		if errors.Is(err, fault.ErrUnavailable) {
			all = append(all, drill.Of(d.name, nil, err, 0))
			continue
		}
		if err != nil {
			return errors.Join(runError(cmd.Context(), err), grounds.leave())
		}
		o := a.drillOnce(cmd.Context(), d, servers, filepath.Join(folder, d.name), f, panel)
		for again := 0; o.Status == drill.Inconclusive && again < f.again && cmd.Context().Err() == nil; again++ {
			o = a.drillOnce(cmd.Context(), d, servers, filepath.Join(folder, d.name), f, panel)
		}
		all = append(all, o)
	}
	panel.close()
	err = errors.Join(grounds.leave(), a.tellDrills(all, f))
	if f.random > 0 && f.json != "-" {
		fmt.Fprintln(a.stdout)
		err = errors.Join(err, coverage.Table(a.stdout))
	}
	if err == nil {
		err = exitOf(cmd.Context(), all)
	}
	return err
}

// chosenDrills parses what is asked for, those that need more servers last. Each has a database.
func chosenDrills(names []string, f *drillFlags) (all []one, err error) {
	ways := 0
	for _, way := range []bool{f.all, len(names) > 0, f.random != 0} {
		if way {
			ways++
		}
	}
	switch {
	case ways == 0:
		return nil, usageError(fmt.Errorf("%w: which drill? give names (see --list), --all or --random N", errFlag))
	case ways > 1:
		return nil, usageError(fmt.Errorf("%w: names, --all and --random do not go together; give one of them", errFlag))
	case f.random < 0 || f.again < 0:
		return nil, usageError(fmt.Errorf("%w: --random %d, --again %d: want no number below 0", errFlag, f.random, f.again))
	case f.all:
		names = profiles.Drills()
	}
	for i := range f.random {
		seed := f.seed + uint64(i)
		if all, err = add(all, randomPrefix+strconv.FormatUint(seed, 10), drill.Random(seed), f.sets); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		source, err := profiles.Drill(name)
		if err != nil {
			return nil, usageError(err)
		}
		if all, err = add(all, name, source, f.sets); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return a.profile.Topology.Nodes - b.profile.Topology.Nodes })
	return all, nil
}

func add(all []one, name string, source profile.Source, sets []string) ([]one, error) {
	p, err := parseProfile(source, overrides{sets: sets})
	return append(all, one{name, p}), err
}

func (a *app) drillOnce(ctx context.Context, d one, servers experiment.Servers, dir string, f *drillFlags, panel *panel) drill.Outcome {
	began := time.Now()
	servers.Lasting = true // they see the next drill, so what this one has made goes
	ctx, cancel := context.WithTimeoutCause(ctx, drillBound, errHung)
	defer cancel()
	res, err := experiment.Run(ctx, experiment.Options{
		Profile: d.profile, Servers: servers, RunID: newRunID(began), Dir: dir, Version: version, Revision: revision(), Keep: f.keep,
		AllowHosts: f.servers.allowHosts, Log: panel, Progress: panel.show,
	})
	o := drill.Of(d.name, res, err, time.Since(began).Seconds())
	if res == nil && err != nil {
		o.ExitCode = exitCode(runError(ctx, err))
	}
	if errors.Is(context.Cause(ctx), errHung) {
		o.Status, o.Reasons = drill.Fail, append(o.Reasons, errHung.Error())
		if o.ExitCode != exitGuarantee {
			o.ExitCode = exitThreshold
		}
	}
	if o.Status != drill.Pass && strings.HasPrefix(d.name, randomPrefix) {
		o.Reasons = append(o.Reasons, "again: spillway drill --random 1 --seed "+strings.TrimPrefix(d.name, randomPrefix))
	}
	panel.say("drill %s: %s", d.name, o.Status)
	return o
}

// randomPrefix starts the name of a random drill; its seed follows.
const randomPrefix = "random-"

// drillBound is how long a drill may take; the offering ends then, and what was offered is drained within the profile's bound.
const drillBound = 4 * time.Minute

var errHung = fmt.Errorf("the drill was not over after %v", drillBound)

func (a *app) tellDrills(all []drill.Outcome, f *drillFlags) error {
	var err error
	if f.json == "-" {
		err = drill.JSON(a.stdout, all)
	} else {
		err = drill.Table(a.stdout, all)
	}
	if f.json != "" && f.json != "-" {
		err = errors.Join(err, writeTo(f.json, all, drill.JSON))
	}
	if f.junit != "" {
		err = errors.Join(err, writeTo(f.junit, all, drill.JUnit))
	}
	return err
}

func writeTo(path string, all []drill.Outcome, write func(w io.Writer, all []drill.Outcome) error) error {
	file, err := os.Create(path)
	if err != nil {
		return environmentError(err)
	}
	return errors.Join(write(file, all), file.Close())
}

// exitOf returns the code of the worst outcome: a broken guarantee before what proves nothing before a missed condition.
func exitOf(ctx context.Context, all []drill.Outcome) error {
	skipped, codes := 0, map[int]bool{}
	for _, o := range all {
		switch {
		case o.Status == drill.Skipped:
			skipped++
		case o.Status == drill.Inconclusive && o.ExitCode == exitPass:
			codes[exitInvalid] = true
		default:
			codes[o.ExitCode] = true
		}
	}
	for _, code := range []int{exitGuarantee, exitInvalid, exitThreshold, exitEnvironment, exitInternal, exitInterrupted} {
		if codes[code] {
			return exitWith(code)
		}
	}
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return exitWith(exitInterrupted)
	case skipped == len(all):
		return &exitError{exitInvalid, errAllSkipped}
	default:
		return nil
	}
}

var errAllSkipped = errors.New("every drill was skipped, so nothing was proved")
