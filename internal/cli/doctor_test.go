package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestOnlyOldRunsAreLeftovers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, want := range map[string]bool{
		"20260304t050506-ab12":  true,
		"20260304t050507-ab12":  true,
		"20260304t050508-ab12":  false, // a minute is not over
		"20260304t050600-ab12":  false,
		"20260399t050506-ab12":  false, // no date
		"production":            false,
		"20260304t050506-ab12x": false,
		"":                      false,
	} {
		if got := oldRun(name, now); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	if id := newRunID(now); !oldRun(id, now.Add(time.Hour)) {
		t.Errorf("%q, as runs are named, is not known for one", id)
	}
}

func TestDoctorRefusesAForeignHostWithoutAskingIt(t *testing.T) {
	t.Parallel()
	// The address is one for documentation: asking it would take until a time-out.
	code, out, _ := runVerb(t, "", "doctor", "--json", "--uri", "amqp://u:secret@192.0.2.1/", "--postgres", "postgres://u:secret@192.0.2.1/d")
	if code != exitEnvironment || strings.Contains(out, "secret") {
		t.Errorf("exit %d with %s", code, out)
	}
	var report struct{ Checks []check }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		switch {
		case c.Name == "hosts" && c.Condition == checkMissing && strings.Contains(c.Detail, "--allow-host 192.0.2.1"):
			return
		case c.Area == "broker" || c.Area == "database":
			t.Errorf("asked: %+v", c)
		}
	}
	t.Errorf("no word of the host in %+v", report.Checks)
}

func TestDoctorSaysWhichFaultsCannotBeHad(t *testing.T) {
	t.Parallel()
	_, out, _ := runVerb(t, "", "doctor", "--uri", "amqp://127.0.0.1:1/", "--postgres", "postgres://127.0.0.1:1/d", "--profile", "outage")
	for _, want := range []string{"missing  faults: postgres.stop", "ok       faults: workers.fail", "missing  broker: broker", "missing  database: answers"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	_, out, _ = runVerb(t, "", "doctor", "--uri", "amqp://127.0.0.1:1/", "--postgres", "postgres://127.0.0.1:1/d")
	if !strings.Contains(out, "note     faults: postgres.stop") {
		t.Errorf("a fault that the profile does not have is needed:\n%s", out)
	}
}
