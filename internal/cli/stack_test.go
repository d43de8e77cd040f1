package cli

import (
	"strings"
	"testing"
	"time"

	"spillway/internal/stack"
)

func TestStackUpRefusesBadFlagsBeforeItStartsAnything(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		args []string
		says string
	}{
		{"a source that does not exist", []string{"--source", "moon"}, `--source "moon": want root, host or compose`},
		{"a time to live below zero", []string{"--ttl", "-1s"}, "--ttl -1s: want 0 or more"},
		{"a service that does not exist", []string{"--services", "postgres,kafka"}, `--services "kafka"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runVerb(t, "", append([]string{"stack", "up"}, row.args...)...)
			if code != exitUsage || !strings.Contains(stderr, row.says) {
				t.Errorf("exit %d with %q, want %d with %q", code, stderr, exitUsage, row.says)
			}
		})
	}
}

func TestANamedRootThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"by up":                   {"stack", "up", "--root", dir},
		"by up in the background": {"stack", "up", "--detach", "--root", dir},
		"by run":                  {"run", "steady", "--root", dir, "--out", dir + "/out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runVerb(t, "", args...)
			if want := "no stack root: " + dir + " has no rabbitmq"; code != exitEnvironment || stderr != want {
				t.Errorf("exit %d with %q, want %d with %q", code, stderr, exitEnvironment, want)
			}
		})
	}
}

func TestStackStateForPeople(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var text strings.Builder
	err := printStateText(&text, stack.State{
		PID: 7, StartedAt: start, EndsAt: start.Add(time.Hour), Source: stack.SourceRoot, Suite: "forky",
		Addresses: stack.Addresses{Postgres: "postgres://u:p@127.0.0.1:1/d"}.Redacted(),
		Services:  []stack.Status{{Service: "rabbitmq", Version: "4.3.6"}, {Service: "postgres", Version: "18.6", Running: true, PID: 9}},
	}, start.Add(90*time.Second))
	want := `rabbitmq    4.3.6                          stopped
postgres    18.6                           pid 9
PostgreSQL  postgres://u:xxxxx@127.0.0.1:1/d
source      root (Debian forky)
up for      1m30s, supervisor pid 7
ends in     58m30s
`
	if err != nil || normalise(text.String()) != normalise(want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, text.String(), want)
	}
}

// normalise makes runs of blanks one, since widths follow the longest cell.
func normalise(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(out, "\n")
}

func TestAServiceStateIsAWord(t *testing.T) {
	t.Parallel()
	for want, row := range map[string]stack.State{
		"stopped": {Services: []stack.Status{{}}},
		"pid 9":   {Services: []stack.Status{{Running: true, PID: 9}}},
		"running": {Services: []stack.Status{{Running: true}}},
		"unknown": {Services: []stack.Status{{}}, Problem: "the engine does not answer"},
	} {
		if got := serviceState(row, row.Services[0]); got != want {
			t.Errorf("%+v is %q, want %q", row, got, want)
		}
	}
}

func TestStackEnvIsForAShell(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	printEnv(&text, "SPILLWAY_TEST_", stack.Addresses{AMQP: "amqp://u:p@h:1/", Postgres: "postgres://u:p@h:2/d?sslmode=disable"})
	want := "export SPILLWAY_TEST_URI='amqp://u:p@h:1/'\nexport SPILLWAY_TEST_POSTGRES='postgres://u:p@h:2/d?sslmode=disable'\n"
	if text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}
