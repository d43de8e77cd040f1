package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spillway/internal/experiment"
	"spillway/internal/profile"
	"spillway/internal/result"
	"spillway/profiles"
)

// stdinArg is the argument that stands for standard input.
const stdinArg = "-"

func (a *app) newProfile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "List, show and check profiles",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.newProfileList(), a.newProfileShow(), a.newProfileValidate(), a.newProfileSchema())
	return cmd
}

func (a *app) newProfileList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the profiles that come with spillway",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return a.listProfiles(profiles.List(), profiles.Get) },
	}
}

// listProfiles names each profile with the first sentence of what it shows.
func (a *app) listProfiles(names []string, get func(name string) (profile.Source, error)) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, name := range names {
		source, err := get(name)
		if err != nil {
			return err
		}
		p, err := parseProfile(source, overrides{})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\n", name, firstSentence(p.Description))
	}
	return w.Flush()
}

// firstSentence returns a text up to its first full stop.
func firstSentence(text string) string {
	if sentence, _, more := strings.Cut(text, ". "); more {
		return sentence + "."
	}
	return text
}

func (a *app) newProfileShow() *cobra.Command {
	var sets []string
	var effective bool
	cmd := &cobra.Command{
		Use:   "show NAME|FILE|-",
		Short: "Print a profile",
		Long:  "Print a profile as it is written, or with --effective as a run would use it: with defaults and --set.",
		Args:  usageArgs(cobra.ExactArgs(1)),

		ValidArgsFunction: completeProfiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := resolveProfile(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if !effective && len(sets) == 0 {
				_, err := a.stdout.Write(source.Data)
				return err
			}
			p, err := parseProfile(source, overrides{sets: sets})
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(profile.Marshal(p))
			return err
		},
	}
	cmd.Flags().BoolVar(&effective, "effective", false, "with defaults and settings written out")
	addSetFlag(cmd, &sets)
	return cmd
}

func (a *app) newProfileValidate() *cobra.Command {
	var sets []string
	cmd := &cobra.Command{
		Use:   "validate NAME|FILE|- ...",
		Short: "Check profiles and print every problem with its position",
		Args:  usageArgs(cobra.MinimumNArgs(1)),

		ValidArgsFunction: completeProfiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			unsound := false
			for _, arg := range args {
				if err := a.validateOne(arg, sets, cmd.InOrStdin()); err != nil {
					fmt.Fprintln(a.stderr, err)
					unsound = true
				}
			}
			if unsound {
				return exitWith(exitUsage)
			}
			return nil
		},
	}
	addSetFlag(cmd, &sets)
	return cmd
}

// validateOne prints that a profile is sound, or returns what is wrong with it.
func (a *app) validateOne(arg string, sets []string, stdin io.Reader) error {
	source, err := resolveProfile(arg, stdin)
	if err != nil {
		return err
	}
	settings, err := parseSets(sets)
	if err != nil {
		return err
	}
	if _, err := profile.Parse(source, settings, result.CheckThresholds, experiment.Replays{}.Reader(folderOf(source))); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: ok\n", profile.Printable(source.Name))
	return nil
}

func (a *app) newProfileSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of profiles, for editors",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(profile.Schema())
			return err
		},
	}
}

// addSetFlag adds --set. Its values may hold commas, so each is one setting.
func addSetFlag(cmd *cobra.Command, sets *[]string) {
	cmd.Flags().StringArrayVar(sets, "set", nil, "set a key of the profile, `path=value`; repeatable")
}

// resolveProfile returns the profile that an argument means; "-" is standard input.
func resolveProfile(arg string, stdin io.Reader) (profile.Source, error) {
	var source profile.Source
	var err error
	if arg == stdinArg {
		source, err = profiles.Read("stdin", stdin)
	} else {
		source, err = profiles.Resolve(arg)
	}
	if err != nil {
		return profile.Source{}, usageError(err)
	}
	return source, nil
}

// folderOf returns the folder that a profile's own names of files count from: where it lies, or here when it came through a pipe.
func folderOf(source profile.Source) string { return filepath.Dir(source.Name) }

// parseProfile applies settings from outside the profile and returns the sound profile, or a usage error with
// every problem on a line of its own, so that an editor can follow the positions.
func parseProfile(source profile.Source, o overrides, more ...profile.Check) (*profile.Profile, error) {
	settings, err := o.parse()
	if err != nil {
		return nil, usageError(err)
	}
	p, err := profile.Parse(source, settings, append(more, result.CheckThresholds)...)
	var problems profile.Problems
	if errors.As(err, &problems) {
		return nil, usageError(fmt.Errorf("%s in the profile:\n%w", plural(len(problems), "problem"), err))
	}
	return p, err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func parseSets(texts []string) ([]profile.Set, error) {
	sets := make([]profile.Set, 0, len(texts))
	for _, text := range texts {
		s, err := profile.ParseSet(text)
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// usageArgs marks a wrong number of arguments as a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(err)
		}
		return nil
	}
}
