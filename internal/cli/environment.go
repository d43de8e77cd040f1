package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spillway/internal/profile"
)

// variablePrefix starts the name of the variable that stands for a flag.
const variablePrefix = "SPILLWAY_"

// variableAnnotation marks a flag whose value came from the environment, and names the variable.
const variableAnnotation = "spillway_variable"

// environmentHelp ends the help of every verb that has flags.
const environmentHelp = `{{if .HasAvailableLocalFlags}}
Environment: every flag is also SPILLWAY_<NAME>, with _ for -, such as SPILLWAY_OUT for --out. The flag wins. Values of
repeatable flags are separated by spaces or commas.{{end}}
`

// variableOf returns the variable of a flag: "max-time" is SPILLWAY_MAX_TIME.
func variableOf(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets the flags that the command line left out from their variables; an empty variable is as good as
// none. Hidden flags are between spillway and itself and have no variable; a process started with one has been told
// everything by its parent, whose environment it merely inherits.
func (a *app) applyEnvironment(cmd *cobra.Command) error {
	var problems []error
	flags := cmd.Flags()
	internal := false
	flags.Visit(func(f *pflag.Flag) { internal = internal || f.Hidden })
	if internal {
		return nil
	}
	flags.VisitAll(func(f *pflag.Flag) {
		text := a.getenv(variableOf(f.Name))
		if text == "" || f.Changed || f.Hidden || f.Name == "help" {
			return
		}
		if err := setFrom(flags, f, text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", variableOf(f.Name), err))
		}
	})
	if len(problems) > 0 {
		return usageError(errors.Join(problems...))
	}
	return nil
}

var errBadVariable = errors.New("bad value")

// setFrom gives a flag its value from the environment. The error does not repeat the value of a text flag, which could
// be a secret: texts are never refused here.
func setFrom(flags *pflag.FlagSet, f *pflag.Flag, text string) error {
	values := []string{text}
	if repeatable(f) {
		values = splitList(text)
	}
	for _, value := range values {
		if err := flags.Set(f.Name, value); err != nil {
			return fmt.Errorf("%w %q; want %s", errBadVariable, value, kindWords(f.Value.Type()))
		}
	}
	return flags.SetAnnotation(f.Name, variableAnnotation, []string{variableOf(f.Name)})
}

// kindWords puts the type of a flag into words.
func kindWords(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 90s"
	case "stringToString":
		return "key=value"
	default:
		return kind
	}
}

func repeatable(f *pflag.Flag) bool {
	return slices.Contains([]string{"stringArray", "stringSlice", "stringToString"}, f.Value.Type())
}

// splitList splits at spaces and commas, but not inside brackets: "topology.tiers=[1s,2s], load.rate=5" is two.
func splitList(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(", \t\n", r)
	})
}

// variableFrom returns the variable that a flag's value came from, "" for the command line.
func variableFrom(f *pflag.Flag) string {
	if names := f.Annotations[variableAnnotation]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// nameVariables adds to a usage error which variables had a say: a bad value may be in one of them, where nobody looks.
func nameVariables(cmd *cobra.Command, err error) error {
	if exitCode(err) != exitUsage {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if name := variableFrom(f); name != "" {
			names = append(names, name)
		}
	})
	var e *exitError
	if len(names) == 0 || !errors.As(err, &e) || e.err == nil {
		return err
	}
	return usageError(fmt.Errorf("%w\n(set in the environment: %s)", e.err, strings.Join(names, ", ")))
}

// overrides are the settings of a command line over a profile, the weakest first.
type overrides struct {
	environment []profile.Set // shortcut flags that came from the environment
	sets        []string      // --set
	flags       []profile.Set // shortcut flags as written
}

// parse returns all of them in order.
func (o overrides) parse() ([]profile.Set, error) {
	sets, err := parseSets(o.sets)
	if err != nil {
		return nil, err
	}
	return slices.Concat(o.environment, sets, o.flags), nil
}
