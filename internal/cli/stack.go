package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"spillway/internal/stack"
)

func (a *app) newStack() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stack",
		Short: "Run RabbitMQ, PostgreSQL and Prometheus on this machine",
		Long: `Run real servers on this machine: RabbitMQ, PostgreSQL and Prometheus as child processes on free loopback ports.

"run" starts its own and stops them again; a stack that is up already is used instead, which saves the start.`,
		Example: `  spillway stack setup               # once, as root or with sudo: makes the root that servers run in
  spillway stack up --detach         # servers in the background, for an hour
  eval "$(spillway stack env)"       # their addresses, for this shell
  spillway stack down`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.newStackSetup(), a.newStackUp(), a.newStackDown(), a.newStackStatus(), a.newStackLogs(), a.newStackEnv())
	return cmd
}

func (a *app) newStackSetup() *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Make the root that the servers run in, where there is none yet",
		Long: `Make the root that the servers run in: a Debian tree with RabbitMQ, PostgreSQL and Prometheus, made by debootstrap
below the user's cache folder (about 75 s, 0.9 GB). Where none can be made, the distribution's own packages are installed,
and where they cannot be either, a Docker engine will do. What is there already is left alone, so a second call is quick.`,
		Example: "  sudo spillway stack setup",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.stackSetup(cmd.Context()) },
	}
}

func (a *app) stackSetup(ctx context.Context) error {
	_, err := stack.MakeRoot(ctx, stack.MakeOptions{Progress: a.stderr})
	if ctx.Err() != nil {
		return exitWith(exitInterrupted)
	}
	for _, c := range stack.Describe(ctx, stack.Options{}) {
		if c.Usable() {
			if err != nil {
				fmt.Fprintf(a.stderr, "no stack root: %v\n", err)
			}
			fmt.Fprintf(a.stdout, "servers: %s\n", c)
			return nil
		}
	}
	if err == nil {
		err = stack.ErrUnavailable
	}
	return environmentError(err)
}

// stackFlags are the flags of "stack up".
type stackFlags struct {
	stack      stack.Options
	source     string
	ttl        time.Duration
	detach     bool
	asJSON     bool
	supervisor bool   // print one line for the program that started this one
	lifeline   bool   // end with standard input
	socket     string // control socket; empty for the usual one
}

func (a *app) newStackUp() *cobra.Command {
	var f stackFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the servers and hold them until Ctrl-C, or in the background with --detach",
		Example: `  spillway stack up
  spillway stack up --detach --ttl 4h
  spillway stack up --nodes 3           # a cluster of RabbitMQ
  spillway stack up --source host       # the distribution's own RabbitMQ
  spillway stack up --source compose    # containers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stackUp(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.detach, "detach", false, "return when all is up and leave the servers to a supervisor")
	flags.DurationVar(&f.ttl, "ttl", 0, "end after this time; 0 means never, but an hour with --detach")
	flags.StringVar(&f.source, "source", "", "where servers come from: root, host or compose; default: the first that serves")
	flags.StringVar(&f.stack.Root, "root", a.getenv("SPILLWAY_STACK_ROOT"), "folder of the stack root, if not the usual one ($SPILLWAY_STACK_ROOT)")
	flags.IntVar(&f.stack.Nodes, "nodes", 1, fmt.Sprintf("nodes of RabbitMQ, up to %d; several form a cluster (not with compose)", stack.MaxNodes))
	flags.StringSliceVar(&f.stack.Services, "services", nil, "rabbitmq, postgres, prometheus; default: all")
	flags.BoolVar(&f.asJSON, "json", false, "print the state as JSON, credentials included")
	flags.BoolVar(&f.supervisor, "supervisor", false, "")
	flags.BoolVar(&f.lifeline, "lifeline", false, "")
	flags.StringVar(&f.socket, "socket", "", "")
	for _, internal := range []string{"supervisor", "lifeline", "socket"} {
		_ = flags.MarkHidden(internal) // fails only for an unknown flag
	}
	return cmd
}

// detachedTTL keeps a forgotten stack from running for ever.
const detachedTTL = time.Hour

func (a *app) stackUp(ctx context.Context, f stackFlags) error {
	f.stack.Source = stack.Source(f.source)
	if err := checkStackFlags(f); err != nil {
		return usageError(err)
	}
	f.stack.Progress = a.stderr
	if f.detach {
		return a.stackDetach(ctx, f)
	}
	return a.stackHold(ctx, f)
}

var errFlag = errors.New("bad flag")

func checkStackFlags(f stackFlags) error {
	switch f.stack.Source {
	case stack.SourceAuto, stack.SourceRoot, stack.SourceHost, stack.SourceCompose:
	default:
		return fmt.Errorf("%w: --source %q: want root, host or compose", errFlag, f.source)
	}
	if f.ttl < 0 {
		return fmt.Errorf("%w: --ttl %v: want 0 or more", errFlag, f.ttl)
	}
	if f.stack.Nodes < 1 || f.stack.Nodes > stack.MaxNodes {
		return fmt.Errorf("%w: --nodes %d: want 1 to %d", errFlag, f.stack.Nodes, stack.MaxNodes)
	}
	known := map[string]bool{}
	for _, s := range stack.AllServices() {
		known[s] = true
	}
	for _, s := range f.stack.Services {
		if !known[s] {
			return fmt.Errorf("%w: --services %q: want some of %v", errFlag, s, stack.AllServices())
		}
	}
	return nil
}

// stackDetach starts a supervisor; a stack that is up already is as good.
func (a *app) stackDetach(ctx context.Context, f stackFlags) error {
	if f.ttl == 0 {
		f.ttl = detachedTTL
	}
	if err := f.stack.CheckRoot(); err != nil {
		return environmentError(err)
	}
	remote, up, err := stack.AttachRemote(ctx)
	if err != nil {
		return environmentError(err)
	}
	if up {
		fmt.Fprintln(a.stderr, "a stack is up already")
		return a.stackShow(ctx, remote, f.asJSON, f.asJSON)
	}
	state, err := stack.Detach(ctx, stack.DetachOptions{Stack: f.stack, TTL: f.ttl})
	if err != nil {
		return environmentError(err)
	}
	return printState(a.stdout, state, f.asJSON, f.asJSON)
}

// stackHold is the supervisor, in the foreground or behind --detach.
func (a *app) stackHold(ctx context.Context, f stackFlags) error {
	o := stack.SuperviseOptions{Stack: f.stack, TTL: f.ttl, Socket: f.socket}
	if f.lifeline {
		o.Lifeline = os.Stdin
	}
	if !f.supervisor {
		picked, err := stack.Pick(ctx, o.Stack)
		if err != nil {
			return environmentError(err)
		}
		o.Stack.Source = picked.Source
		if picked.NeedsRoot() && os.Geteuid() != 0 {
			return a.stackHoldElevated(ctx, f, o)
		}
	}
	ready := false
	o.Ready = func(s stack.State) {
		ready = true
		_ = a.stackReady(s, f) // a reader that has gone does not stop the servers
	}
	err := stack.Supervise(ctx, o)
	if err != nil && f.supervisor && !ready {
		_ = stack.Report(a.stdout, stack.State{}, err) // as above
	}
	switch {
	case err == nil:
		return nil
	case !ready && ctx.Err() != nil: // Ctrl-C is how a stack that is up ends, but not how one comes up
		return exitWith(exitInterrupted)
	default:
		return environmentError(err)
	}
}

// stackHoldElevated holds the stack through sudo, whose process has printed its own error.
func (a *app) stackHoldElevated(ctx context.Context, f stackFlags, o stack.SuperviseOptions) error {
	var flags []string
	if f.asJSON {
		flags = append(flags, "--json")
	}
	err := stack.HoldElevated(ctx, o, a.stdout, a.stderr, flags...)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return exitWith(ended.ExitCode())
	default:
		return environmentError(err)
	}
}

func (a *app) stackReady(s stack.State, f stackFlags) error {
	if f.supervisor {
		return stack.Report(a.stdout, s, nil)
	}
	if err := printState(a.stdout, s, f.asJSON, f.asJSON); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stderr, "Ctrl-C stops the servers and removes their data")
	return err
}

func (a *app) newStackDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the stack that is up and remove its data",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, up, err := stack.AttachRemote(cmd.Context())
			switch {
			case err != nil:
				return environmentError(err)
			case !up:
				return a.stackDownLeftovers(cmd.Context())
			}
			if err := remote.Down(cmd.Context()); err != nil {
				return environmentError(err)
			}
			fmt.Fprintln(a.stdout, "the stack is down")
			return nil
		},
	}
}

// stackDownLeftovers ends the containers of a spillway that was killed: they outlive it, as children do not.
func (a *app) stackDownLeftovers(ctx context.Context) error {
	projects, err := stack.TakeDownLeftovers(ctx)
	if projects > 0 {
		fmt.Fprintf(a.stdout, "containers of a spillway that was killed are taken down; compose projects: %d\n", projects)
	}
	if err != nil {
		return environmentError(err)
	}
	fmt.Fprintln(a.stdout, "no stack is up")
	return nil
}

func (a *app) newStackStatus() *cobra.Command {
	var secrets, asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is up: addresses, versions, processes, age",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := attached(cmd.Context())
			if err != nil {
				return err
			}
			return a.stackShow(cmd.Context(), remote, asJSON, secrets)
		},
	}
	cmd.Flags().BoolVar(&secrets, "show-secrets", false, "show passwords")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

var errNoStack = errors.New("no stack is up; start one with: spillway stack up --detach")

// attached finds the stack that is up; its absence is an error of the environment.
func attached(ctx context.Context) (*stack.Remote, error) {
	remote, up, err := stack.AttachRemote(ctx)
	if err != nil {
		return nil, environmentError(err)
	}
	if !up {
		return nil, environmentError(errNoStack)
	}
	return remote, nil
}

func (a *app) stackShow(ctx context.Context, remote *stack.Remote, asJSON, secrets bool) error {
	state, err := remote.State(ctx)
	if err != nil {
		return environmentError(err)
	}
	return printState(a.stdout, state, asJSON, secrets)
}

func printState(w io.Writer, s stack.State, asJSON, secrets bool) error {
	if !secrets {
		s.Addresses = s.Addresses.Redacted()
	}
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	}
	return printStateText(w, s, time.Now())
}
