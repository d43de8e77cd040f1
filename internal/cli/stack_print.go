package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"spillway/internal/stack"
)

// printStateText writes a stack's state for people.
func printStateText(w io.Writer, s stack.State, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, service := range s.Services {
		fmt.Fprintf(table, "%s\t%s\t%s\n", service.Service, service.Version, serviceState(s, service))
	}
	if s.Problem != "" {
		fmt.Fprintf(table, "problem\t%s\n", firstLine(s.Problem))
	}
	for _, line := range addressLines(s.Addresses) {
		if line[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", line[0], line[1])
		}
	}
	from := string(s.Source)
	if s.Suite != "" {
		from += " (Debian " + s.Suite + ")"
	}
	fmt.Fprintf(table, "source\t%s\n", from)
	fmt.Fprintf(table, "up for\t%v, supervisor pid %d\n", now.Sub(s.StartedAt).Round(time.Second), s.PID)
	if !s.EndsAt.IsZero() {
		fmt.Fprintf(table, "ends in\t%v\n", s.EndsAt.Sub(now).Round(time.Second))
	}
	return table.Flush()
}

// serviceState is a word for whether a service runs, and as which process where that is one of this machine.
func serviceState(s stack.State, one stack.Status) string {
	switch {
	case s.Problem != "":
		return "unknown"
	case !one.Running:
		return "stopped"
	case one.PID == 0:
		return "running"
	default:
		return fmt.Sprintf("pid %d", one.PID)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func addressLines(a stack.Addresses) [][2]string {
	return [][2]string{{"AMQP", strings.Join(a.URIs(), " ")}, {"management", a.Management}, {"PostgreSQL", a.Postgres}, {"Prometheus", a.Prometheus}}
}

func (a *app) newStackLogs() *cobra.Command {
	return &cobra.Command{
		Use:       "logs [service]",
		Short:     "Print the logs of the stack that is up, of all services or of one",
		Example:   "  spillway stack logs rabbitmq\n  spillway stack logs rabbitmq-2    # the second node of a cluster",
		ValidArgs: stack.AllServices(),
		Args:      cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			remote, err := attached(cmd.Context())
			if err != nil {
				return err
			}
			held := remote.Services()
			if len(args) == 1 && !slices.Contains(held, args[0]) {
				return usageError(fmt.Errorf("%w: %q: the stack that is up holds %s", errNoService, args[0], strings.Join(held, ", ")))
			}
			if len(args) == 1 {
				return a.printLog(cmd, remote, args[0])
			}
			for _, service := range held {
				fmt.Fprintf(a.stdout, "==> %s <==\n", service)
				if err := a.printLog(cmd, remote, service); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

var errNoService = errors.New("no such service")

func (a *app) printLog(cmd *cobra.Command, remote *stack.Remote, service string) error {
	log, err := remote.Log(cmd.Context(), service)
	if err != nil {
		return environmentError(err)
	}
	defer log.Close()
	_, err = io.Copy(a.stdout, log)
	return err
}

func (a *app) newStackEnv() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the addresses of the stack that is up as shell variables, credentials included",
		Long: `Print the addresses of the stack that is up as shell variables, credentials included. Every verb reads them:
SPILLWAY_URI, SPILLWAY_MANAGEMENT, SPILLWAY_POSTGRES, SPILLWAY_PROMETHEUS.`,
		Example: `  eval "$(spillway stack env)"`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := attached(cmd.Context())
			if err != nil {
				return err
			}
			printEnv(a.stdout, prefix, remote.Addresses())
			return nil
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "SPILLWAY_", "how the names begin")
	return cmd
}

// printEnv quotes for POSIX shells; addresses of ours hold no single quote.
func printEnv(w io.Writer, prefix string, a stack.Addresses) {
	for _, v := range [][2]string{
		{"URI", strings.Join(a.URIs(), ",")}, {"MANAGEMENT", a.Management},
		{"POSTGRES", a.Postgres}, {"PROMETHEUS", a.Prometheus},
	} {
		if v[1] != "" {
			fmt.Fprintf(w, "export %s%s='%s'\n", prefix, v[0], v[1])
		}
	}
}
