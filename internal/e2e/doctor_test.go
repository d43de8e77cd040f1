package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit"
)

// checked is one line of `doctor --json`.
type checked struct{ Area, Name, Condition, Detail, Fix string }

// doctor asks the doctor, and returns its checks by "area: name".
func doctor(t *testing.T, env []string, want int, args ...string) map[string]checked {
	t.Helper()
	end := spillway(t, call{args: append([]string{"doctor", "--json"}, args...), env: env})
	if end.code != want {
		t.Errorf("exit %d, want %d\n%s", end.code, want, end.said())
	}
	var report struct{ Checks []checked }
	if err := json.Unmarshal([]byte(end.stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, end.said())
	}
	all := map[string]checked{}
	for _, c := range report.Checks {
		all[c.Area+": "+c.Name] = c
	}
	return all
}

// leaseFrom returns the servers of the stack that an environment leads to.
func leaseFrom(t *testing.T, env []string) shared {
	t.Helper()
	end := spillway(t, call{args: []string{"stack", "env"}, env: env})
	value := func(name string) string {
		found := regexp.MustCompile(name + `='?([^'\s]+)`).FindStringSubmatch(end.stdout)
		if found == nil {
			t.Fatalf("no %s in %s", name, end.said())
		}
		return found[1]
	}
	return shared{value("SPILLWAY_URI"), withoutUser(t, value("SPILLWAY_MANAGEMENT")), value("SPILLWAY_POSTGRES")}
}

func TestDoctorFindsAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	all := doctor(t, sharedServers(t).env(), 0)
	for _, name := range []string{
		"broker: broker", "broker: management API", "broker: user tags", "broker: rights", "broker: feature flags", "broker: alarms",
		"database: version", "database: create schemas", "database: connections", "faults: workers.fail", "machine: open files",
	} {
		if c := all[name]; c.Condition != "ok" || c.Detail == "" || c.Fix != "" {
			t.Errorf("%s is %+v, want ok", name, c)
		}
	}
	if c := all["faults: postgres.stop"]; c.Condition != "note" || !strings.Contains(c.Detail, "leave --postgres out") {
		t.Errorf("postgres.stop is %+v, want a note: no database of ours", c)
	}
}

func TestDoctorNamesWhatIsMissingAndTheProfileSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	role, _ := s.role(t)
	user, _ := s.brokerUser(t, "monitoring", rights{"", ".*", ".*"})
	user.postgres = role.postgres
	all := doctor(t, user.env(), 6, "--profile", "outage")
	for name, fix := range map[string]string{
		"broker: user tags":        "administrator",
		"database: create schemas": "GRANT CREATE ON DATABASE",
		"faults: postgres.stop":    "",
	} {
		if c := all[name]; c.Condition != "missing" || !strings.Contains(c.Fix, fix) {
			t.Errorf("%s is %+v, want it missing, with a fix", name, c)
		}
	}
}

func TestDoctorCleansUpAfterRunsThatAreGoneAndOnlyThose(t *testing.T) {
	t.Parallel()
	env := ownStack(t)
	s := leaseFrom(t, env)
	const gone, busy, foreign = "20200102t030405-ab12", "20200102t030406-ab12", "production"
	for _, name := range []string{gone, busy, foreign} {
		s.leftover(t, name)
	}
	s.hold(t, rabbit.VhostPrefix+busy)
	for _, queue := range []string{"spillway-" + gone + ".inventory.orders", "spillway.orders", "orders"} { // in the default virtual host
		s.request(t, http.MethodPut, "/api/queues/%2F/"+queue, map[string]any{"durable": true})
	}
	s.request(t, http.MethodPut, "/api/exchanges/%2F/spillway-"+gone+".orders", map[string]any{"type": "topic"})
	policy := map[string]any{"pattern": "^none$", "definition": map[string]any{"max-length": 7}}
	s.request(t, http.MethodPut, "/api/policies/%2F/spillway.spillway-"+gone+".inventory.orders", policy)

	c := doctor(t, env, 0)["servers: leftovers"]
	if c.Condition != "note" || !strings.Contains(c.Detail, gone) || strings.Contains(c.Detail, "spillway-"+busy) || strings.Contains(c.Detail, foreign) {
		t.Errorf("leftovers are %+v, want those of %s alone", c, gone)
	}
	if c := doctor(t, env, 0, "--clean")["servers: leftovers"]; c.Condition != "ok" || !strings.HasPrefix(c.Detail, "removed ") {
		t.Errorf("leftovers are %+v, want them removed", c)
	}
	vhosts, err := s.api(t).ListVhosts(t.Context(), rabbit.VhostPrefix)
	if want := []string{rabbit.VhostPrefix + busy, rabbit.VhostPrefix + foreign}; err != nil || !slices.Equal(vhosts, want) {
		t.Errorf("%v: virtual hosts are %v, want %v", err, vhosts, want)
	}
	if schemas := s.schemas(t, "spillway_"); !slices.Equal(schemas, []string{"spillway_" + foreign}) {
		t.Errorf("schemas are %v, want the foreign one", schemas)
	}
	if queues := s.queues(t, "%2F"); !slices.Equal(queues, []string{"orders", "spillway.orders"}) {
		t.Errorf("queues are %v, want the foreign ones", queues)
	}
	if policies := s.names(t, "/api/policies/%2F"); len(policies) != 0 {
		t.Errorf("policies are %v, want none", policies)
	}
	if exchanges := s.names(t, "/api/exchanges/%2F"); slices.Contains(exchanges, "spillway-"+gone+".orders") {
		t.Errorf("exchanges are %v, want none of the run", exchanges)
	}
	for _, queue := range []string{"orders", "spillway.orders"} {
		s.request(t, http.MethodDelete, "/api/queues/%2F/"+queue, nil)
	}
	s.discard(t, busy)
	s.discard(t, foreign)
}

// leftover makes what a run leaves behind.
func (s shared) leftover(t *testing.T, runID string) {
	t.Helper()
	api := s.api(t)
	if err := api.CreateVhost(t.Context(), rabbit.VhostPrefix+runID, api.Username()); err != nil {
		t.Fatal(err)
	}
	schema := `"spillway_` + runID + `"`
	_, err := s.connect(t).Exec(t.Context(), "create schema "+schema+"; comment on schema "+schema+" is 'made by spillway for one run'")
	if err != nil {
		t.Fatal(err)
	}
}

// hold keeps a connection to a virtual host open until the test is over, and returns when the broker shows it.
func (s shared) hold(t *testing.T, vhost string) {
	t.Helper()
	driver, err := rabbit.New(rabbit.Config{URIs: []string{s.uri}, Vhost: vhost})
	if err != nil {
		t.Fatal(err)
	}
	link, err := driver.OpenPublisher(t.Context(), "e2e", 1, func([]broker.Settlement) {}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Abort(); <-link.Done() })
	api := s.api(t)
	eventually(t, "the connection in the statistics", func() bool {
		n, err := api.Connections(t.Context(), vhost)
		return err == nil && n == 1
	})
}
