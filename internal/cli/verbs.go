package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spillway/internal/profile"
	"spillway/profiles"
)

// errUnknownVerb is returned for a word that is no verb where one was expected.
var errUnknownVerb = errors.New("unknown verb")

// finish gives every verb below root what all have in common: mistakes on the command line are usage errors with a
// suggestion, flags come from the environment too, and a group of verbs alone prints its help.
func (a *app) finish(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(root.UsageTemplate() + environmentHelp)
	a.finishVerb(root)
}

func (a *app) finishVerb(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		a.finishVerb(child)
	}
	if cmd.HasSubCommands() {
		if !cmd.Runnable() {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		cmd.Args = knownVerb
		return
	}
	if cmd.Args != nil {
		cmd.Args = usageArgs(cmd.Args)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.applyEnvironment(cmd); err != nil {
			return err
		}
		return nameVariables(cmd, run(cmd, args))
	}
}

// knownVerb refuses the arguments of a group of verbs: the first would have been a verb of it.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	advice := fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	if near := profile.Suggest(args[0], names); near != "" {
		advice = fmt.Sprintf("did you mean %q?", near)
	}
	return usageError(fmt.Errorf("%w %q for %q; %s", errUnknownVerb, args[0], cmd.CommandPath(), advice))
}

// flagError marks what is wrong with a flag as a usage error, and suggests a flag for one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError(err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := profile.Suggest(unknown.GetSpecifiedName(), names); near != "" {
		return usageError(fmt.Errorf("%w; did you mean --%s?", err, near))
	}
	return usageError(fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help"))
}

// completeProfiles completes the argument that names a profile: a built-in one, or a file.
func completeProfiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return profiles.List(), cobra.ShellCompDirectiveDefault
}
