package e2e

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runLine is the first line of a run, with its id.
var runLine = regexp.MustCompile(`(?m)^run (\S+): `)

// refusal is a call that must end with exit 6 before any load, in one sentence.
type refusal struct {
	servers shared
	args    []string
	env     []string
	want    []string // which, where and what to do
}

// check makes the call and returns what it said.
func (r refusal) check(t *testing.T) ended {
	t.Helper()
	end := spillway(t, call{args: append([]string{"run", "steady", "-r", "100", "-z", "1s"}, r.args...), env: append(r.servers.env(), r.env...)})
	if end.code != 6 || strings.Contains(end.stdout, "s load ") {
		t.Errorf("exit %d, want 6 before any load\n%s", end.code, end.said())
	}
	if sentences := strings.Count(strings.TrimSpace(end.stderr), "\n") + 1; sentences != 1 {
		t.Errorf("%d lines, want one sentence:\n%s", sentences, end.stderr)
	}
	for _, want := range r.want {
		if !strings.Contains(end.stderr, want) {
			t.Errorf("no %q in %q", want, end.stderr)
		}
	}
	return end
}

func TestServersThatCannotBeUsedAreNamedAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	dead := deadAddress(t)
	with := func(change func(*shared)) shared { c := s; change(&c); return c }
	noConfigure, brokerPassword := s.brokerUser(t, "administrator", rights{"^$", ".*", ".*"})
	noTags, _ := s.brokerUser(t, "", everything)
	noCreate, databasePassword := s.role(t)
	ownUser := []string{"--set", "topology.isolation=prefix", "--set", "topology.declare=arguments", "--set", "topology.management=none"}
	for name, row := range map[string]refusal{
		"a broker that nobody runs": {
			servers: with(func(c *shared) { c.uri = "amqp://u:pass-word@" + dead + "/" }),
			want:    []string{"the broker cannot be reached", dead, "connection refused"},
		},
		"a database that nobody runs": {
			servers: with(func(c *shared) { c.postgres = "postgres://u:pass-word@" + dead + "/d" }),
			want:    []string{"PostgreSQL cannot be reached", dead, "check that it runs there"},
		},
		"a management API that nobody runs": {
			servers: with(func(c *shared) { c.management = "http://" + dead }),
			want:    []string{"management API at http://" + dead, "rabbitmq_management"},
		},
		"a wrong password at the broker": {
			servers: noConfigure, env: []string{"SPILLWAY_PASSWORD=pass-word"},
			want: []string{"login", "e2e-"},
		},
		"a wrong password at the database": {
			servers: with(func(c *shared) { c.postgres = strings.Replace(noCreate.postgres, databasePassword, "pass-word", 1) }),
			want:    []string{"PostgreSQL refused the login", "e2e_", "pg_hba.conf"},
		},
		"a database that does not exist": {
			servers: s.database(t, "nowhere-to-be-found"),
			want:    []string{"the PostgreSQL database does not exist", `"nowhere-to-be-found"`, "create it"},
		},
		"no right to create a schema": {
			servers: with(func(c *shared) { c.postgres = noCreate.postgres }),
			want:    []string{"the PostgreSQL user lacks a right", "GRANT CREATE ON DATABASE"},
		},
		"no right to configure": {
			servers: noConfigure, args: ownUser, want: []string{"right", "configure", "e2e-"},
		},
		"no tag to make a virtual host": {
			servers: noTags, want: []string{"management", "e2e-", "tag"},
		},
		"a stop of a database that is not ours": {
			servers: s, args: []string{"--set", "faults=[{kind: postgres.stop, from: 100ms, for: 100ms}]"},
			want: []string{"postgres.stop", "not available here", "leave --postgres out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := row.check(t)
			for _, secret := range []string{"pass-word", brokerPassword, databasePassword} {
				if strings.Contains(end.said(), secret) {
					t.Errorf("a password is told: %s", end.said())
				}
			}
			if id := runLine.FindStringSubmatch(end.stdout); id == nil {
				t.Errorf("no run id in %q", end.stdout)
			} else {
				s.nothingLeft(t, id[1])
			}
		})
	}
}

// deadAddress returns an address of this machine that refuses connections.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestAForeignHostIsRefusedWithoutAWordToIt(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	const foreign = "192.0.2.1" // for documentation: asking it would end in a time-out
	for name, change := range map[string]func(*shared){
		"the broker":         func(c *shared) { c.uri = "amqp://u:p@" + foreign + "/" },
		"the management API": func(c *shared) { c.management = "http://" + foreign + ":15672" },
		"the database":       func(c *shared) { c.postgres = "postgres://u:p@" + foreign + "/d" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := refusal{servers: s, want: []string{`host "` + foreign + `"`, "--allow-host " + foreign}}
			change(&row.servers)
			begun := time.Now()
			row.check(t)
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("took %v: was the host asked?", took)
			}
		})
	}
}

func TestAResultsFolderThatCannotBeWrittenIsSaidBeforeTheLoad(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"a file in its place": file, "a file above it": filepath.Join(file, "out")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal{servers: s, args: []string{"-o", out}, want: []string{"results folder " + out, "not a directory", "-o"}}.check(t)
			if data, err := os.ReadFile(file); string(data) != "mine" {
				t.Errorf("the file holds %q now: %v", data, err)
			}
		})
	}
}
