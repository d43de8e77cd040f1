package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envVerb executes one command line with an environment, and with run in place of the verb's own work.
func envVerb(t *testing.T, environment map[string]string, run func(*cobra.Command), args ...string) (code int, said string) {
	t.Helper()
	var out strings.Builder
	a := &app{stdout: &out, stderr: &out, getenv: func(name string) string { return environment[name] }}
	root := &cobra.Command{Use: "spillway", SilenceErrors: true, SilenceUsage: true}
	verb := a.newRun()
	verb.RunE = func(cmd *cobra.Command, _ []string) error { run(cmd); return nil }
	root.AddCommand(verb)
	a.finish(root)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	return exitCode(err), out.String()
}

func TestEveryFlagOfRunIsAVariable(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"SPILLWAY_RATE": "5", "SPILLWAY_URI": "amqp://a/, amqp://b/ amqp://c/", "SPILLWAY_MAX_TIME": "90s", "SPILLWAY_KEEP": "true",
		"SPILLWAY_LABEL": "a=1,b=2", "SPILLWAY_SET": "topology.tiers=[1s,2s], load.size=600", "SPILLWAY_OUT": "there",
		"SPILLWAY_POSTGRES": "postgres://here/", "SPILLWAY_HELP": "true",
	}
	got := map[string]string{}
	code, said := envVerb(t, environment, func(cmd *cobra.Command) {
		cmd.Flags().Visit(func(f *pflag.Flag) { got[f.Name] = f.Value.String() })
	}, "run", "steady", "--out", "here")
	if code != exitPass {
		t.Fatalf("exit %d with %s", code, said)
	}
	for name, want := range map[string]string{
		"rate": "5", "uri": "[amqp://a/,amqp://b/,amqp://c/]", "max-time": "1m30s", "keep": "true",
		"set": `["topology.tiers=[1s,2s]",load.size=600]`, "out": "here", "postgres": "postgres://here/", "help": "",
	} {
		if got[name] != want {
			t.Errorf("--%s is %q, want %q", name, got[name], want)
		}
	}
	if label := got["label"]; !strings.Contains(label, "a=1") || !strings.Contains(label, "b=2") {
		t.Errorf("--label is %q, want both", label)
	}
}

func TestABadVariableIsAUsageErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"SPILLWAY_KEEP":     `SPILLWAY_KEEP: bad value "oops"; want true or false`,
		"SPILLWAY_MAX_TIME": `SPILLWAY_MAX_TIME: bad value "oops"; want a duration such as 90s`,
		"SPILLWAY_LABEL":    `SPILLWAY_LABEL: bad value "oops"; want key=value`,
	} {
		code, said := envVerb(t, map[string]string{name: "oops"}, func(*cobra.Command) { t.Error("the verb ran") }, "run", "steady")
		if code != exitUsage || said != want {
			t.Errorf("%s: exit %d with %q, want %q", name, code, said, want)
		}
	}
}

func TestTheCommandLineWinsOverTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		environment map[string]string
		args        []string
		want        string // the settings in order, the last wins
	}{
		"a variable alone counts":           {map[string]string{"SPILLWAY_RATE": "5"}, nil, "SPILLWAY_RATE=5"},
		"the flag wins over its variable":   {map[string]string{"SPILLWAY_RATE": "5"}, []string{"-r", "6"}, "--rate 6"},
		"--set wins over a variable":        {map[string]string{"SPILLWAY_RATE": "5"}, []string{"--set", "load.rate=7"}, "SPILLWAY_RATE=5 load.rate=7"},
		"a shortcut flag wins over --set":   {nil, []string{"-r", "6", "--set", "load.rate=7"}, "load.rate=7 --rate 6"},
		"--set wins over its variable":      {map[string]string{"SPILLWAY_SET": "load.rate=9"}, []string{"--set", "load.rate=7"}, "load.rate=7"},
		"an empty variable is none":         {map[string]string{"SPILLWAY_RATE": ""}, nil, ""},
		"the variable of another is no use": {map[string]string{"SPILLWAY_RATES": "5"}, nil, ""},
	} {
		var words []string
		code, said := envVerb(t, row.environment, func(cmd *cobra.Command) {
			sets, err := cmd.Flags().GetStringArray("set")
			if err != nil {
				t.Error(err)
			}
			all, err := overridesOf(cmd, sets).parse()
			if err != nil {
				t.Error(err)
			}
			for _, s := range all {
				if s.Words == "" {
					s.Words = s.Path + "=" + s.Value
				}
				words = append(words, s.Words)
			}
		}, append([]string{"run", "steady"}, row.args...)...)
		if got := strings.Join(words, " "); code != exitPass || got != row.want {
			t.Errorf("%s: exit %d %s with %q, want %q", name, code, said, got, row.want)
		}
	}
}

// A supervisor inherits its parent's environment: SPILLWAY_DETACH there would make it start another, for ever.
func TestInternalFlagsHaveNoVariableAndShutTheEnvironmentOut(t *testing.T) {
	t.Parallel()
	set := map[string]bool{}
	verb := func(args ...string) {
		a := &app{getenv: func(string) string { return "true" }}
		cmd := &cobra.Command{Use: "up", RunE: func(cmd *cobra.Command, _ []string) error { return a.applyEnvironment(cmd) }}
		cmd.Flags().Bool("detach", false, "")
		cmd.Flags().Bool("supervisor", false, "")
		if err := cmd.Flags().MarkHidden("supervisor"); err != nil {
			t.Fatal(err)
		}
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		clear(set)
		cmd.Flags().Visit(func(f *pflag.Flag) { set[f.Name] = true })
	}
	if verb(); !set["detach"] || set["supervisor"] {
		t.Errorf("set %v, want --detach alone", set)
	}
	if verb("--supervisor"); set["detach"] {
		t.Errorf("set %v, want --supervisor alone", set)
	}
}

func TestABadProfileValueFromTheEnvironmentIsNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"SPILLWAY_RATE": "SPILLWAY_RATE=x: load.rate: ",
		"SPILLWAY_SET":  "(set in the environment: SPILLWAY_SET)",
	} {
		var out strings.Builder
		a := &app{stdout: &out, stderr: &out, getenv: func(asked string) string {
			if asked == name {
				return "x"
			}
			return ""
		}}
		root := a.newRoot()
		root.SetArgs([]string{"run", "steady"})
		err := root.ExecuteContext(t.Context())
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", name, err, want)
		}
	}
}

func TestMistakesOnTheCommandLineExitTwoWithAdvice(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"a slip in a verb":             {[]string{"rum"}, `did you mean "run"?`},
		"a verb that is nothing alike": {[]string{"frobnicate"}, `see "spillway --help"`},
		"a slip in a verb of a group":  {[]string{"profile", "lst"}, `did you mean "list"?`},
		"no such verb in a group":      {[]string{"stack", "frobnicate"}, `see "spillway stack --help"`},
		"a slip in a flag":             {[]string{"run", "steady", "--rat", "5"}, "did you mean --rate?"},
		"an unknown short flag":        {[]string{"run", "steady", "-x"}, `see "spillway run --help"`},
		"an internal flag is not told": {[]string{"stack", "up", "--supervise"}, `see "spillway stack up --help"`},
		"a flag without its value":     {[]string{"run", "steady", "--rate"}, "flag needs an argument"},
		"a value of another type":      {[]string{"run", "steady", "--max-time", "x"}, `invalid argument "x"`},
		"an argument too many":         {[]string{"stack", "up", "x"}, `unknown command "x"`},
		"an argument too few":          {[]string{"run"}, "accepts 1 arg(s), received 0"},
		"version takes no argument":    {[]string{"version", "x"}, `unknown command "x"`},
	} {
		code, out, errs := runVerb(t, "", row.args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, row.want) {
			t.Errorf("%s: exit %d with %q and %q, want %d with %q", name, code, out, errs, exitUsage, row.want)
		}
	}
}

func TestAGroupOfVerbsAlonePrintsItsHelp(t *testing.T) {
	t.Parallel()
	for _, group := range [][]string{{}, {"stack"}, {"profile"}} {
		if code, out, _ := runVerb(t, "", group...); code != exitPass || !strings.Contains(out, "Available Commands:") {
			t.Errorf("%v: exit %d with %q, want the help", group, code, out)
		}
	}
}

func TestHelpTellsOfTheEnvironmentAndHidesInternalFlags(t *testing.T) {
	t.Parallel()
	code, out, _ := runVerb(t, "", "stack", "up", "--help")
	if code != exitPass || !strings.Contains(out, "every flag is also SPILLWAY_<NAME>") || strings.Contains(out, "--supervisor") {
		t.Errorf("exit %d with\n%s", code, out)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", ""}, {"profile", "show", ""}, {"profile", "validate", ""}, {"doctor", "--profile", ""}} {
		code, out, _ := runVerb(t, "", append([]string{"__complete"}, args...)...)
		if code != exitPass || !slices.Contains(strings.Split(out, "\n"), "outage-breaker") {
			t.Errorf("%v: exit %d with %q, want the profiles", args, code, out)
		}
	}
	if code, out, _ := runVerb(t, "", "completion", "bash"); code != exitPass || !strings.Contains(out, "__start_spillway") {
		t.Errorf("exit %d with %d bytes, want a script", code, len(out))
	}
}
