package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spillway/internal/broker"
	"spillway/internal/experiment"
	"spillway/internal/profile"
	"spillway/internal/redrive"
	"spillway/internal/result"
)

// redriveFlags are the flags of "redrive".
type redriveFlags struct {
	servers  serverFlags
	from, to string
	vhost    string
	filter   redrive.Filter
	idsFile  string
	rate     float64
	limit    int64
	stop     float64
	dryRun   bool
	work     bool
	showBody bool
}

func (a *app) newRedrive() *cobra.Command {
	var f redriveFlags
	cmd := &cobra.Command{
		Use:   "redrive [RUN-FOLDER]",
		Short: "Move parked messages back to the work queue, at a bounded rate",
		Long: `Move messages from the parking lot back to the work queue: those that the filters choose, under the same ids, each with a
new budget. A message leaves parking only once the broker has confirmed its copy. The redrive ends when too many of the messages
come back.

RUN-FOLDER is the folder of a run that was kept (--keep, or a run that did not pass, on servers that last); it says which queues
these are, and with --work its workers work the messages off. Otherwise give --from and --to. A dry run moves nothing.

Exit codes: 0 moved, 2 usage, 3 ended since messages came back, 6 environment.`,
		Example: `  spillway redrive results/20261201t101500-1a2b --dry-run
  spillway redrive results/20261201t101500-1a2b --rate 500 --work
  spillway redrive --from inventory.orders.parking --to inventory.orders --error-class transient --older-than 1h`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.redrive(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "the parking lot")
	flags.StringVar(&f.to, "to", "", "the work queue")
	flags.StringVar(&f.vhost, "vhost", "", "virtual host, in place of the address's or the run's")
	flags.StringArrayVar(&f.filter.Types, "type", nil, "only messages of this type, repeatable")
	flags.StringArrayVar(&f.filter.ErrorClasses, "error-class", nil, "only messages whose last failure was of this class: transient, permanent, unknown; repeatable")
	flags.StringArrayVar(&f.filter.IDs, "id", nil, "only the message with this id, repeatable")
	flags.StringVar(&f.idsFile, "ids", "", "only messages whose id stands in this file, one a line")
	flags.DurationVar(&f.filter.OlderThan, "older-than", 0, "only messages that failed first longer ago than this")
	flags.DurationVar(&f.filter.YoungerThan, "younger-than", 0, "only messages that failed first more recently than this")
	flags.Float64Var(&f.rate, "rate", 100, "messages per second")
	flags.Int64Var(&f.limit, "limit", 0, "move no more than so many; 0 is all")
	flags.Float64Var(&f.stop, "stop-share", 0.5, "end when more than this share of what was moved is parked again; 0 never")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be moved, and move nothing")
	flags.BoolVar(&f.work, "work", false, "let the workers of the run's profile work the messages off, and say what came of them")
	flags.BoolVar(&f.showBody, "show-body", false, "show the bodies in a dry run, which may hold what is nobody's business")
	f.servers.register(flags, a.getenv)
	return cmd
}

func (a *app) redrive(cmd *cobra.Command, args []string, f *redriveFlags) error {
	if err := f.check(args); err != nil {
		return err
	}
	if err := f.readIDs(); err != nil {
		return err
	}
	parking, stop, err := a.parking(cmd.Context(), args, f)
	if err != nil {
		return errors.Join(err, stop())
	}
	defer func() { _ = stop() }() // a server that was started for this alone ends with the process at the latest
	o := redrive.Options{Filter: f.filter, Rate: f.rate, Limit: f.limit, DryRun: f.dryRun, StopShare: f.stop}
	if f.dryRun {
		o.Chosen = func(d *broker.Delivery) { a.showParked(d, f.showBody) }
	} else {
		o.Progress = func(s redrive.Summary) {
			fmt.Fprintf(a.stderr, "%d of %d moved, %d came back\n", s.Moved, s.Parked, s.Back)
		}
	}
	sum, worked, err := parking.Redrive(cmd.Context(), o, f.work)
	a.tellRedrive(sum, worked, f)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redrive.ErrParkedAgain):
		return &exitError{exitThreshold, err}
	case errors.Is(context.Cause(cmd.Context()), errInterrupted):
		return exitWith(exitInterrupted)
	default:
		return environmentError(err)
	}
}

// check finds what is wrong with the flags.
func (f *redriveFlags) check(args []string) error {
	bad := func(format string, values ...any) error {
		return usageError(fmt.Errorf("%w: "+format, append([]any{errFlag}, values...)...))
	}
	switch {
	case len(args) == 0 && (f.from == "" || f.to == ""):
		return bad("which parking lot? give the folder of a run, or --from and --to")
	case f.from != "" && f.from == f.to:
		return bad("--from and --to are the same queue, %q", f.from)
	case !(f.rate > 0): // written so that NaN is refused, as below
		return bad("--rate %g: want above 0", f.rate)
	case f.limit < 0:
		return bad("--limit %d: want 0 or more", f.limit)
	case !(f.stop >= 0 && f.stop <= 1):
		return bad("--stop-share %g: want 0 to 1", f.stop)
	case f.filter.OlderThan < 0 || f.filter.YoungerThan < 0:
		return bad("an age below 0")
	default:
		return f.checkModes(len(args) == 1)
	}
}

// checkModes finds flags that do not go together.
func (f *redriveFlags) checkModes(ofRun bool) error {
	switch {
	case f.work && !ofRun:
		return usageError(fmt.Errorf("%w: --work needs the folder of a run: only that says what the workers are", errFlag))
	case f.work && f.dryRun:
		return usageError(fmt.Errorf("%w: --work has nothing to do in a dry run", errFlag))
	case f.showBody && !f.dryRun:
		return usageError(fmt.Errorf("%w: --show-body is for a dry run", errFlag))
	default:
		return nil
	}
}

// readIDs adds the ids of the file.
func (f *redriveFlags) readIDs() error {
	if f.idsFile == "" {
		return nil
	}
	data, err := os.ReadFile(f.idsFile)
	if err != nil {
		return usageError(fmt.Errorf("--ids: %w", err))
	}
	f.filter.IDs = append(f.filter.IDs, strings.Fields(string(data))...)
	if len(f.filter.IDs) == 0 {
		return usageError(fmt.Errorf("%w: --ids %s: there is no id in it, which would choose every message", errFlag, f.idsFile))
	}
	return nil
}

// parking finds the queues and the servers.
func (a *app) parking(ctx context.Context, args []string, f *redriveFlags) (p experiment.Parking, stop func() error, err error) {
	stop = func() error { return nil }
	effective := &profile.Profile{}
	var kept *result.Result
	if len(args) == 1 {
		if kept, effective, err = keptRun(args[0]); err != nil {
			return p, stop, err
		}
	}
	needs := *effective
	if !f.work {
		needs.Inbox.Strategy = profile.InboxNone // what only moves needs no database
	}
	var servers experiment.Servers
	servers, stop, err = a.servers(ctx, f.servers, &needs, io.Discard)
	if err != nil {
		return p, stop, runError(ctx, err)
	}
	if !servers.Lasting {
		return p, stop, usageError(fmt.Errorf("%w: there is no broker to redrive on: give --uri, or start one with `spillway stack up --detach` before the run", errFlag))
	}
	p = experiment.Parking{Servers: servers}
	if kept != nil {
		if p, err = experiment.ParkingOf(effective, kept.Run.ID, kept.Environment.Broker.Version, kept.Run.Seed, servers); err != nil {
			return p, stop, err
		}
	}
	p.Version = version
	override := func(field *string, value string) {
		if value != "" {
			*field = value
		}
	}
	override(&p.From, f.from)
	override(&p.To, f.to)
	override(&p.Vhost, f.vhost)
	return p, stop, nil
}

// keptRun reads what a run has left in its folder.
func keptRun(folder string) (*result.Result, *profile.Profile, error) {
	kept, err := result.Read(folder)
	if err != nil {
		return nil, nil, usageError(err)
	}
	source, err := resolveProfile(filepath.Join(folder, "profile.yaml"), nil)
	if err != nil {
		return nil, nil, err
	}
	p, err := parseProfile(source, overrides{})
	return kept, p, err
}

// showParked writes a line about a message. What a message says is not to be trusted, so it is quoted.
func (a *app) showParked(d *broker.Delivery, body bool) {
	f := &d.Headers.Failure
	fmt.Fprintf(a.stdout, "%q type %q class %q retries %d first failed %s error %q\n", d.MessageID, d.Type, f.Class, d.Headers.Retries,
		time.UnixMicro(f.FirstFailedAt).UTC().Format(time.RFC3339), f.LastError)
	if body {
		fmt.Fprintf(a.stdout, "  %q\n", d.Body)
	}
}

func (a *app) tellRedrive(s redrive.Summary, w experiment.Worked, f *redriveFlags) {
	if f.dryRun {
		fmt.Fprintf(a.stdout, "dry run: %d of %d parked messages would be moved; nothing was\n", s.Chosen, s.Parked)
		return
	}
	fmt.Fprintf(a.stdout, "%d of %d parked messages moved back (%d chosen); %d were parked meanwhile\n", s.Moved, s.Parked, s.Chosen, s.Back)
	if f.work {
		fmt.Fprintf(a.stdout, "worked off: %d applied, %d refused, %d duplicates absorbed, %d retries, %d parked again\n",
			w.Applied, w.Refused, w.Duplicates, w.Retried, w.Parked)
	}
}
