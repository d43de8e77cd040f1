//go:build linux

package stack

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// maker runs "stack setup" with a debootstrap of ours, which makes a tree of empty files. The real one is run by
// `make test`, whose root every other test here uses.
type maker struct {
	t          *testing.T
	cache, bin string
}

func newMaker(t *testing.T, script string) *maker {
	t.Helper()
	m := &maker{t, t.TempDir(), t.TempDir()}
	prelude := `#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
suite=$1 target=$2
make_tree() {
	mkdir -p $target/etc $target/usr/bin $target/usr/lib/rabbitmq/bin $target/usr/lib/postgresql/18/bin
	touch $target/usr/bin/prometheus $target/usr/lib/rabbitmq/bin/rabbitmq-server $target/usr/lib/postgresql/18/bin/initdb
}
echo "I: Retrieving InRelease"
`
	m.script(prelude + script)
	return m
}

func (m *maker) script(text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.bin, "debootstrap"), []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *maker) command(output *bytes.Buffer) *exec.Cmd {
	cmd := exec.Command(executable, "stack", "setup")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+m.cache, "PATH="+m.bin+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = output, output
	return cmd
}

func (m *maker) setup() string {
	m.t.Helper()
	var output bytes.Buffer
	if err := m.command(&output).Run(); err != nil {
		m.t.Fatalf("%v\n%s", err, output.String())
	}
	return output.String()
}

func (m *maker) path(name string) string { return filepath.Join(m.cache, "spillway", name) }

func TestASetupIsMadeOnceAndFoundAgain(t *testing.T) {
	t.Parallel()
	m := newMaker(t, "make_tree\n")
	if first := m.setup(); !strings.Contains(first, "made the Debian forky root") || !strings.Contains(first, "fetching packages") {
		t.Errorf("the first set-up says %q", first)
	}
	hosts, err := os.ReadFile(m.path("root-forky/etc/hosts"))
	if err != nil || !strings.HasPrefix(string(hosts), "127.0.0.1 localhost\n") {
		t.Errorf("hosts file %q, %v", hosts, err)
	}
	m.script("#!/bin/sh\nexit 1\n")
	want := "servers: root: Debian forky in " + m.path("root-forky") + "\n"
	if second := m.setup(); second != want {
		t.Errorf("the second set-up says %q, want %q", second, want)
	}
}

func TestTheOlderSuiteServesWhereTheNewerFails(t *testing.T) {
	t.Parallel()
	m := newMaker(t, `if [ $suite = forky ]; then mkdir -p $target/half; echo "E: no such suite"; exit 1; fi
make_tree
`)
	said := m.setup()
	for _, part := range []string{"Debian forky: debootstrap: exit status 1", "E: no such suite", "made the Debian trixie root"} {
		if !strings.Contains(said, part) {
			t.Errorf("the set-up does not say %q in %q", part, said)
		}
	}
	if exists(m.path("root-forky")) || !exists(m.path("root-trixie")) {
		t.Error("want a whole root of trixie alone")
	}
}

func TestAnInterruptedSetupLeavesNothingAndIsMadeAgain(t *testing.T) {
	t.Parallel()
	m := newMaker(t, `make_tree
if [ ! -e $target/../second ]; then touch $target/../second; mkdir $target/proc; mount -t proc proc $target/proc; sleep 1000; fi
`)
	var output bytes.Buffer
	cmd := m.command(&output)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() bool { return exists(m.path("second")) })
	pids := descendants(cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(pids) == 0 {
		t.Error("found no process of the set-up")
	}
	eventually(t, 5*time.Second, allGone(pids))
	m.setup()
	if exists(m.path("root-forky.part")) || !exists(m.path("root-forky/usr/bin/prometheus")) {
		t.Error("want the root alone, whole")
	}
}
