//go:build linux

package e2e

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// metricsLine says where a run serves its metrics.
var metricsLine = regexp.MustCompile(`(?m)^metrics: (http://\S+)$`)

func TestPasswordsAppearNowhere(t *testing.T) {
	t.Parallel()
	admin := sharedServers(t)
	s, brokerPassword := admin.brokerUser(t, "administrator", everything)
	role, databasePassword := admin.role(t)
	s.postgres = role.postgres
	admin.grantCreate(t, role)

	dir := filepath.Join(t.TempDir(), "out")
	// A threshold that is missed, so that findings and what is kept are told too.
	p := start(t, call{args: short("--set", "thresholds=[messages.offered==1]", "-o", dir), env: s.env()})
	p.awaitOutput("s load ")
	page := metricsPage(t, p)
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "cmdline"))
	if err != nil {
		t.Fatal(err)
	}
	r := readRun(t, p.wait(), dir, 3)
	for what, text := range everythingTold(t, r) {
		for _, secret := range []string{brokerPassword, databasePassword} {
			if strings.Contains(text, secret) {
				t.Errorf("a password is in %s", what)
			}
		}
	}
	if strings.Contains(page+string(arguments), brokerPassword) || strings.Contains(page+string(arguments), databasePassword) {
		t.Error("a password is in the metrics or in the process list")
	}
	admin.discard(t, r.Run.ID)
}

func TestAPasswordFromAFileIsUsedAndNotTold(t *testing.T) {
	t.Parallel()
	admin := sharedServers(t)
	s, password := admin.brokerUser(t, "administrator", everything)
	address, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	name := address.User.Username()
	address.User = nil
	s.uri = address.String()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runProfile(t, call{args: short("--username", name, "--password-file", file), env: s.env()}, 0)
	for what, text := range everythingTold(t, r) {
		if strings.Contains(text, password) {
			t.Errorf("the password is in %s", what)
		}
	}
	admin.nothingLeft(t, r.Run.ID)
}

func TestServersOfOurOwnHaveNoPasswordAmongTheirArguments(t *testing.T) {
	t.Parallel()
	env := ownStack(t)
	shown := spillway(t, call{args: []string{"stack", "status", "--json", "--show-secrets"}, env: env})
	passwords := map[string]bool{}
	for _, found := range regexp.MustCompile(`//[^:/"]+:([^@"]+)@`).FindAllStringSubmatch(shown.stdout, -1) {
		passwords[found[1]] = true
	}
	if len(passwords) == 0 {
		t.Fatalf("no passwords in %s", shown.said())
	}
	for _, p := range servers(t, own.cmd.Process.Pid) {
		for password := range passwords {
			if strings.Contains(p.arguments, password) {
				t.Errorf("%s %d has a password among its arguments", p.name, p.pid)
			}
		}
	}
	hidden := spillway(t, call{args: []string{"stack", "status"}, env: env})
	for password := range passwords {
		if strings.Contains(hidden.said(), password) {
			t.Error("stack status shows a password unasked")
		}
	}
}

// metricsPage reads the run's metrics while it goes on.
func metricsPage(t *testing.T, p *process) string {
	t.Helper()
	address := metricsLine.FindStringSubmatch(p.out.String())
	if address == nil {
		t.Fatalf("no word of the metrics in %s", p.out.String())
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(page), "spillway_") {
		t.Fatalf("%v: %s", err, page)
	}
	return string(page)
}

// everythingTold is what a run printed and wrote, by where.
func everythingTold(t *testing.T, r run) map[string]string {
	t.Helper()
	told := map[string]string{"the output": r.said()}
	err := filepath.WalkDir(r.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		told[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return told
}
