package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spillway/internal/profile"
)

// runVerb executes one command line and returns its exit code and what it printed.
func runVerb(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	a := &app{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	root := a.newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		errs.WriteString(err.Error())
	}
	return exitCode(err), out.String(), errs.String()
}

func TestProfileListNamesEachWithASentence(t *testing.T) {
	t.Parallel()
	code, out, _ := runVerb(t, "", "profile", "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitPass || len(lines) != 5 {
		t.Fatalf("exit %d with\n%s\nwant 5 profiles", code, out)
	}
	const want = "steady          A constant load well below what two cores carry end to end, with nothing broken."
	if lines[4] != want {
		t.Errorf("got %q, want %q", lines[4], want)
	}
}

func TestProfileShowPrintsTheFileOrTheEffectiveProfile(t *testing.T) {
	t.Parallel()
	code, out, _ := runVerb(t, "", "profile", "show", "steady")
	if code != exitPass || !strings.HasPrefix(out, "# The everyday case") {
		t.Errorf("exit %d with %q, want the file as it is", code, out)
	}
	code, out, _ = runVerb(t, "", "profile", "show", "profiles/steady.yaml", "--effective", "--set", "topology.tiers=[1s,2s]")
	if code != exitPass || !strings.Contains(out, "  tiers:\n    - 1s\n    - 2s\n") || !strings.Contains(out, "confirm_window: 256") {
		t.Errorf("exit %d with\n%s\nwant defaults and settings written out", code, out)
	}
	p, err := profile.Parse(profile.Source{Name: "shown", Data: []byte(out)}, nil)
	if err != nil || p.Load.Rate <= 0 {
		t.Errorf("what is shown does not read back: %v", err)
	}
}

func TestProfileValidateReportsAllProblemsOfAllFiles(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("name: bad\nload: {rate: 0, duration: 1s, sise: 5}\nthresholds: [mesages.lost==0]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runVerb(t, "name: x\n", "profile", "validate", bad, "steady", "-", "stedy")
	if code != exitUsage || out != "profiles/steady.yaml: ok\n" {
		t.Errorf("exit %d with %q, want %d and steady alone", code, out, exitUsage)
	}
	for _, want := range []string{
		bad + ":2:14: load.rate: is required, above 0",
		bad + `:2:31: load.sise: unknown key; did you mean "size"?`,
		bad + `:3:14: thresholds.0: "mesages.lost" is not a path into result.json; did you mean "messages.lost"?`,
		"stdin:1:1: load.rate: is required",
		`"stedy" is neither a file nor a profile that comes with spillway; did you mean "steady"?`,
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in\n%s", want, errs)
		}
	}
}

func TestProfileSchemaPrintsTheSchema(t *testing.T) {
	t.Parallel()
	if code, out, _ := runVerb(t, "", "profile", "schema"); code != exitPass || out != string(profile.Schema()) {
		t.Errorf("exit %d with %q", code, out)
	}
}

func TestProfileMistakesExitTwo(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no file":              {"profile", "validate"},
		"two to show":          {"profile", "show", "steady", "outage"},
		"no such verb":         {"profile", "lst"},
		"a setting of no path": {"profile", "show", "steady", "--set", "5"},
		"a setting in vain":    {"profile", "show", "steady", "--set", "load.rat=5"},
		"an unknown flag":      {"profile", "show", "steady", "--efective"},
		"no such profile":      {"profile", "show", "none"},
	} {
		if code, _, errs := runVerb(t, "", args...); code != exitUsage || errs == "" {
			t.Errorf("%s: exit %d with %q, want %d and a word", name, code, errs, exitUsage)
		}
	}
}
