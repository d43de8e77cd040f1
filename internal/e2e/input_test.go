package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// badProfile has one mistake of each kind; the table below says where.
const badProfile = `name: bad
load:
  rate: 0
  duration: tomorrow
  size: 100
  sise: 5
workers:
  prefetch: 0
  ack_batch: many
topology:
  tiers: [5s, 0s]
faults:
  - kind: workers.fail
    from: 1s
    for: 0s
    fail: {transient: 2}
thresholds:
  - messages.lots==0
`

func TestEveryProblemOfAProfileIsListedWithItsPosition(t *testing.T) {
	t.Parallel()
	end := spillwayOn(t, badProfile)
	for _, want := range []string{
		":3:9: load.rate: is required, above 0",
		`:4:13: load.duration: "tomorrow"`,
		":5:9: load.size: 100 is out of range",
		`:6:3: load.sise: unknown key; did you mean "size"?`,
		":8:13: workers.prefetch: 0 is out of range",
		`:9:14: workers.ack_batch: "many"`,
		":11:15: topology.tiers.1: 0s is out of range",
		":15:10: faults.0.for: 0s is out of range",
		":16:23: faults.0.fail.transient: 2 is out of range",
		`:18:5: thresholds.0: "messages.lots" is not a path`,
	} {
		if !strings.Contains(end.stderr, "bad.yaml"+want) {
			t.Errorf("no %q in\n%s", want, end.stderr)
		}
	}
	if !strings.HasPrefix(end.stderr, "spillway: 10 problems in the profile:\n") {
		t.Errorf("not 10 problems:\n%s", end.stderr)
	}
}

func TestProblemsBetweenKeysAreListedTogether(t *testing.T) {
	t.Parallel()
	end := spillwayOn(t, `name: bad
load: {rate: -5, duration: 10s}
workers: {prefetch: 10, ack_batch: 11, concurrency: 12}
topology: {delivery_limit_to: retry, declare: none}
faults:
  - {kind: postgres.stop, from: 8s, for: 5s}
`)
	for _, want := range []string{
		":2:14: load.rate: -5 is out of range",
		":3:36: workers.ack_batch: 11 is above workers.prefetch, which is 10",
		":3:53: workers.concurrency: 12 is above workers.prefetch, which is 10",
		":4:31: topology.delivery_limit_to: retry makes a cycle that loses messages",
		":4:47: topology.declare: none leaves isolation vhost without queues",
		":6:42: faults.0.for: the fault ends 13s into the load, after the load's end at 10s",
	} {
		if !strings.Contains(end.stderr, "bad.yaml"+want) {
			t.Errorf("no %q in\n%s", want, end.stderr)
		}
	}
}

// spillwayOn runs an unsound profile, which must exit 2 with nothing started and no file written.
func spillwayOn(t *testing.T, text string) ended {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	end := spillway(t, call{args: []string{"run", file, "-o", filepath.Join(dir, "out")}, env: []string{"XDG_CACHE_HOME=" + dir}})
	if end.code != 2 || end.stdout != "" {
		t.Errorf("exit %d with %q, want 2 and nothing begun", end.code, end.stdout)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v: something was made", left, err)
	}
	return end
}

func TestFlagsThatMakeNoSenseAreUsageErrorsBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"an address of another kind":          {[]string{"--uri", "http://u:pass-word@127.0.0.1/"}, "--uri: broker address 1: not an AMQP URI"},
		"an address that cannot be read":      {[]string{"--postgres", "pass-word"}, "--postgres: the PostgreSQL address cannot be used"},
		"a management address of no kind":     {[]string{"--uri", "amqp://127.0.0.1/", "--management", "x"}, "--management: management address 1: not an http"},
		"a certificate that is not there":     {[]string{"--uri", "amqps://127.0.0.1/", "--tls-ca", "/none.pem"}, "/none.pem: no such file"},
		"a password file that is not there":   {[]string{"--password-file", "/none"}, "--password-file: open /none: no such file"},
		"a source that does not exist":        {[]string{"--source", "moon"}, `--source "moon": want root, host or compose`},
		"a time that cannot be":               {[]string{"--max-time", "-5s"}, "--max-time -5s: want 0 or more"},
		"a profile that does not exist":       {[]string{"--", "stedy"}, "accepts 1 arg(s)"},
		"a shortcut with a value of no sense": {[]string{"--rate", "many"}, `--rate many: load.rate: "many" is not a finite number`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			end := spillway(t, call{args: append([]string{"run", "steady"}, row.args...), dir: dir, env: []string{"XDG_CACHE_HOME=" + dir}})
			if end.code != 2 || !strings.Contains(end.stderr, row.want) || strings.Contains(end.said(), "pass-word") {
				t.Errorf("exit %d with %q, want 2 with %q", end.code, end.said(), row.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 || strings.Contains(end.said(), "ready after") {
				t.Errorf("%v %v: something was started\n%s", left, err, end.said())
			}
		})
	}
}
