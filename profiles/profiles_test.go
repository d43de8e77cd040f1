package profiles

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spillway/internal/profile"
	"spillway/internal/result"
)

func TestTheListIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	if got, want := List(), []string{"outage", "outage-breaker", "overload", "poison", "steady"}; !slices.Equal(got, want) {
		t.Errorf("profiles %v, want %v", got, want)
	}
}

func TestEveryProfileIsSoundAndDescribed(t *testing.T) {
	t.Parallel()
	for _, name := range List() {
		source, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.Parse(source, nil, result.CheckThresholds)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if p.Name != name {
			t.Errorf("%s.yaml is named %s", name, p.Name)
		}
		if len(p.Description) < 150 || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%s has no paragraph that says what it shows: %q", name, p.Description)
		}
	}
}

func TestEveryDrillIsSoundSaysWhenItPassesAndWorksUnderLoad(t *testing.T) {
	t.Parallel()
	if len(Drills()) < 17 {
		t.Errorf("drills %v", Drills())
	}
	for _, name := range Drills() {
		source, err := Drill(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.Parse(source, nil, result.CheckThresholds)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if p.Name != name || len(p.Description) < 150 {
			t.Errorf("%s.yaml is named %s and described by %q", name, p.Name, p.Description)
		}
		if len(p.Thresholds) == 0 || len(p.Faults) == 0 && p.Publish.KillShare == 0 && len(p.Load.Bad) == 0 && p.Workers.Fail.Dies == 0 {
			t.Errorf("%s has no accident, or no condition under which it passes", name)
		}
		if !p.Expect.BusyMachine {
			t.Errorf("%s is about its account, and would be invalid where the machine is busy", name)
		}
		if p.Workers.Prefetch < 50 || p.Workers.AckBatch < 2 {
			t.Errorf("%s: prefetch %d and ack batch %d are one message at a time", name, p.Workers.Prefetch, p.Workers.AckBatch)
		}
	}
}

func TestTheTwoOutagesDifferInTheBreakerAlone(t *testing.T) {
	t.Parallel()
	load := func(name string) *profile.Profile {
		source, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.Parse(source, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Name, p.Description, p.Workers.Breaker, p.Thresholds = "", "", profile.Breaker{}, nil
		return p
	}
	if a, b := profile.Marshal(load("outage")), profile.Marshal(load("outage-breaker")); string(a) != string(b) {
		t.Errorf("outage\n%s\noutage-breaker\n%s", a, b)
	}
}

func TestResolveTakesAFileBeforeAName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "steady")
	if err := os.WriteFile(path, []byte("name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Resolve(path)
	if err != nil || got.Name != path || string(got.Data) != "name: mine\n" {
		t.Errorf("got %+v and %v, want the file", got, err)
	}
	for _, arg := range []string{"steady", "profiles/steady", "profiles/steady.yaml"} {
		got, err := Resolve(arg)
		if err != nil || got.Name != "profiles/steady.yaml" || !strings.Contains(string(got.Data), "name: steady") {
			t.Errorf("%s is %q with %v, want the profile steady", arg, got.Name, err)
		}
	}
}

func TestResolveSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"stedy":        `did you mean "steady"?`,
		"none.yaml":    "outage, outage-breaker, overload, poison, steady",
		"":             "outage, outage-breaker",
		"../steady":    "is neither a file",
		"/no/such.yml": "is neither a file",
	} {
		if _, err := Resolve(arg); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %v, want ErrNotFound with %q", arg, err, want)
		}
	}
	if _, err := Resolve(t.TempDir()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a folder gave %v", err)
	}
}

func TestALongFileIsNotReadWhole(t *testing.T) {
	t.Parallel()
	source, err := Read("long", strings.NewReader(strings.Repeat("#", 3<<20)))
	if err != nil || len(source.Data) != maxBytes {
		t.Fatalf("read %d bytes with %v, want %d", len(source.Data), err, maxBytes)
	}
	if _, err := profile.Parse(source, nil); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("got %v, want it refused for its length", err)
	}
}
