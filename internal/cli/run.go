package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spillway/internal/experiment"
	"spillway/internal/metrics"
	"spillway/internal/profile"
	"spillway/internal/result"
)

// runFlags are the flags of "run".
type runFlags struct {
	servers serverFlags
	sets    []string
	labels  map[string]string
	out     string
	keep    bool
	metrics string
	maxTime time.Duration
	quiet   bool
	cpu     string // where a CPU profile of the run goes
	observe string // whether anything hears of the messages
}

// Values of --observers.
const (
	observersOn  = "on"
	observersOff = "off"
)

// shortcuts are the flags that stand for a key of the profile; the letters are those that users of RabbitMQ's own tools
// know.
var shortcuts = []struct{ name, short, path, usage string }{
	{"rate", "r", "load.rate", "total offered rate, messages per second"},
	{"duration", "z", "load.duration", "measured load: 30 or 30s"},
	{"size", "s", "load.size", "body size in bytes"},
	{"confirm-window", "c", "load.confirm_window", "unconfirmed messages per publisher"},
	{"workers", "y", "workers.count", "workers, each with a connection of its own"},
	{"prefetch", "q", "workers.prefetch", "unacked deliveries per worker"},
}

func (a *app) newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run PROFILE",
		Short: "Run one experiment and say what came of every message",
		Long: `Run one experiment: a profile's load through a RabbitMQ retry topology into a PostgreSQL inbox, with its faults, and
then account for every message.

PROFILE is a file or the name of a built-in profile (see "spillway profile list"). Without --uri and --postgres real
servers are started on this machine and stopped again. Ctrl-C stops the offering, drains, audits and saves; a second one
aborts.

Exit codes: 0 pass, 2 usage or profile, 3 threshold missed, 4 guarantee broken, 5 measurement invalid, 6 environment,
130 interrupted.`,
		Example: `  spillway run steady
  spillway run profiles/outage.yaml -o results/outage
  spillway run steady -r 500 -z 10s --set workers.breaker.enabled=true
  spillway run steady --uri amqp://user@broker.test:5672/ --allow-host broker.test`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completeProfiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	for _, s := range shortcuts {
		flags.StringP(s.name, s.short, "", s.usage+" ("+s.path+")")
	}
	addSetFlag(cmd, &f.sets)
	flags.StringToStringVar(&f.labels, "label", nil, "label of the result: key=value, repeatable")
	flags.StringVarP(&f.out, "out", "o", "", "folder for the run's files (default results/<run-id>)")
	flags.BoolVar(&f.keep, "keep", false, "leave the run's virtual host and schema on the servers")
	flags.StringVar(&f.metrics, "metrics-addr", "", "where /metrics is served (default 127.0.0.1:9464, the next free port when taken)")
	flags.DurationVar(&f.maxTime, "max-time", 0, "end the offering after this time; a run cut short is invalid")
	flags.StringVar(&f.cpu, "cpuprofile", "", "write a CPU profile of this process to a file, for go tool pprof")
	flags.StringVar(&f.observe, "observers", observersOn, "off: no ledger, histograms or metrics hear of the messages, to see what they cost; the run is invalid")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress, only the summary")
	f.servers.register(flags, a.getenv)
	return cmd
}

func (a *app) run(cmd *cobra.Command, arg string, f *runFlags) error {
	if f.maxTime < 0 {
		return usageError(fmt.Errorf("%w: --max-time %v: want 0 or more", errFlag, f.maxTime))
	}
	if f.observe != observersOn && f.observe != observersOff {
		return usageError(fmt.Errorf("%w: --observers %q: want %s or %s", errFlag, f.observe, observersOn, observersOff))
	}
	if err := metrics.CheckAddr(f.metrics); err != nil {
		return usageError(fmt.Errorf("--metrics-addr %q: %w; want host:port such as %s", f.metrics, err, metrics.DefaultAddr))
	}
	source, err := resolveProfile(arg, cmd.InOrStdin())
	if err != nil {
		return err
	}
	replays := experiment.Replays{}
	p, err := parseProfile(source, overridesOf(cmd, f.sets), replays.Reader(folderOf(source)))
	if err != nil {
		return err
	}
	panel := a.newPanel(f.quiet)
	defer panel.close()
	id := newRunID(time.Now())
	out := f.out
	if out == "" {
		out = filepath.Join("results", id)
	}
	panel.say("run %s: %s", id, p.Name)
	servers, stop, err := a.servers(cmd.Context(), f.servers, p, panel)
	if err != nil {
		return runError(cmd.Context(), err)
	}
	stopProfile, err := profileCPU(f.cpu)
	if err != nil {
		return errors.Join(err, stop())
	}
	defer stopProfile()
	res, err := experiment.Run(cmd.Context(), experiment.Options{
		Profile: p, Servers: servers, RunID: id, Dir: out, Labels: f.labels, Version: version, Revision: revision(),
		Keep: f.keep, AllowHosts: f.servers.allowHosts, Unobserved: f.observe == observersOff, MetricsAddr: f.metrics, MaxTime: f.maxTime,
		Replays: replays,
		Log:     panel, Progress: panel.show,
	})
	panel.close()
	err = errors.Join(runError(cmd.Context(), err), stop())
	if res == nil {
		return err
	}
	if summaryErr := result.Summary(a.stdout, res); summaryErr != nil {
		return errors.Join(err, summaryErr)
	}
	if err == nil && res.Run.ExitCode != exitPass {
		return exitWith(res.Run.ExitCode)
	}
	return err
}

// runError gives the error of a run that has no result its exit code. What fails before the load after Ctrl-C does so
// because of it.
func runError(ctx context.Context, err error) error {
	early := errors.Is(err, experiment.ErrEnvironment) || exitCode(err) == exitEnvironment
	switch {
	case err == nil:
		return nil
	case early && errors.Is(context.Cause(ctx), errInterrupted):
		return &exitError{exitInterrupted, errInterruptedEarly}
	case early:
		return environmentError(err)
	default:
		return err
	}
}

var errInterruptedEarly = errors.New("interrupted before the load began; nothing was measured")

// overridesOf returns the settings over the profile. Shortcut flags win over --set, which wins over the environment.
func overridesOf(cmd *cobra.Command, sets []string) overrides {
	o := overrides{sets: sets}
	for _, s := range shortcuts {
		flag := cmd.Flags().Lookup(s.name)
		value := flag.Value.String()
		switch variable := variableFrom(flag); {
		case variable != "":
			o.environment = append(o.environment, profile.Set{Path: s.path, Value: value, Words: variable + "=" + value})
		case flag.Changed:
			o.flags = append(o.flags, profile.Set{Path: s.path, Value: value, Words: "--" + s.name + " " + value})
		}
	}
	return o
}

// runIDBytes of chance keep two runs of one second apart.
const runIDBytes = 2

// newRunID returns an id that sorts by time and fits into names of vhosts, schemas and files.
func newRunID(now time.Time) string {
	var chance [runIDBytes]byte
	_, _ = rand.Read(chance[:]) // never fails, see crypto/rand
	return strings.ToLower(now.UTC().Format("20060102t150405")) + "-" + hex.EncodeToString(chance[:])
}
