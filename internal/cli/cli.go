// Package cli is the command line: one file per verb, and the composition root that joins the parts of a run. Nothing
// here decides anything about messages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// app is what every verb gets: where to print, and where the environment comes from.
type app struct {
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
}

// Run executes one command line and returns the exit code. It prints errors on stderr, one sentence each, and never
// calls os.Exit. The context ends with the cause errInterrupted on the first Ctrl-C (see Signals).
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, getenv: os.Getenv}
	root := a.newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var e *exitError
	if err != nil && (!errors.As(err, &e) || e.err != nil) {
		fmt.Fprintf(stderr, "spillway: %v\n", err)
	}
	return exitCode(err)
}

func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "spillway",
		Short:         "Load and backpressure benchmark for reliable messaging on RabbitMQ and PostgreSQL",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(a.stdout) // before finish: completion scripts go where output goes at that moment
	root.SetErr(a.stderr)
	root.AddCommand(a.newRun(), a.newDrill(), a.newRedrive(), a.newVersion(), a.newStack(), a.newDoctor(), a.newProfile())
	a.finish(root)
	return root
}
