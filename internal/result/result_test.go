package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"spillway/internal/profile"
)

func TestTheKeysAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	golden(t, "paths.txt", strings.Join(Paths(), "\n")+"\n")
}

func TestAResultIsWrittenAsCommitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir, sample()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, FileResult))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "result.json", string(data))
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %d files, want 1: a temporary file stayed", len(entries))
	}
}

func TestAResultReadsBackEqual(t *testing.T) {
	t.Parallel()
	dir, want := t.TempDir(), sample()
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, FileResult)} {
		got, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.Profile = compact(t, got.Profile); !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v\nwrote %+v", got, want)
		}
	}
}

func compact(t *testing.T, data json.RawMessage) json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnEmptyResultHasListsAndMapsAndNullMeasures(t *testing.T) {
	t.Parallel()
	data, err := encode(&Result{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"findings": []`, `"labels": {}`, `"parked_by_reason": {}`, `"tiers": {}`, `"confirm": null`, `"recovery_seconds": null`, `"profile": null`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in\n%s", want, data)
		}
	}
}

func TestWhatIsNotFiniteIsNeverWritten(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	r := &Result{Rates: Rates{Applied: &nan}, RetryStorm: Storm{DebtMax: &inf}}
	data, err := encode(r)
	if err != nil || strings.Contains(string(data), "NaN") || r.Rates.Applied != nil || r.RetryStorm.DebtMax != nil {
		t.Errorf("measures that may be null were not: %v", err)
	}
	r = &Result{Latency: Latencies{Confirm: &Latency{Count: 1, P99: nan}}}
	if err := Write(t.TempDir(), r); !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "latency_seconds.confirm.p99") {
		t.Errorf("got %v, want ErrNotFinite naming the path", err)
	}
	if Number(nan) != nil || Number(inf) != nil || *Number(1.5) != 1.5 {
		t.Error("Number does not hold back what is not finite")
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a later version":         {`{"schema":"spillway.result/2","run":7}`, `its schema is "spillway.result/2", want "spillway.result/1"`},
		"no version":              {`{}`, `its schema is "", want "spillway.result/1"`},
		"no JSON":                 {`<html>`, "not a result"},
		"a wrong type":            {`{"schema":"spillway.result/1","run":7}`, "not a result"},
		"an empty file":           {``, "not a result"},
		"a list":                  {`[]`, "not a result"},
		"a version of wrong type": {`{"schema":1}`, "not a result"},
	} {
		path := filepath.Join(t.TempDir(), FileResult)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want ErrSchema with %q and the path", name, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file gave %v", err)
	}
}

func TestKeysOfALaterBuildAreIgnored(t *testing.T) {
	t.Parallel()
	r, err := decode(strings.NewReader(`{"schema":"spillway.result/1","new":1,"messages":{"offered":5,"newer":2}}`))
	if err != nil || r.Messages.Offered != 5 {
		t.Errorf("got %+v and %v, want 5 offered", r, err)
	}
}

func TestWriteFailsWhereItCannotWrite(t *testing.T) {
	t.Parallel()
	if err := Write(filepath.Join(t.TempDir(), "none"), sample()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a missing folder", err)
	}
}

func TestLookupFindsNumbersByPath(t *testing.T) {
	t.Parallel()
	r := sample()
	for path, want := range map[string]float64{
		"messages.offered":                  16000,
		"messages.lost":                     0,
		"latency_seconds.confirm.p99":       0.0123,
		"oldest_age_seconds.tiers.5s.max":   0.31,
		"rates.applied_per_second":          399.7,
		"retry_storm.amplification":         1.62,
		"messages.parked_by_reason.age":     0,
		"messages.retries_per_message.1":    6000,
		"faults.0.storm.debt_max":           5210,
		"faults.0.evidence.errors":          5210,
		"phases.2.end_seconds":              60.5,
		"run.seed":                          42,
		"environment.host.memory_bytes":     8 << 30,
		"process.max_rss_bytes":             64 << 20,
		"signals.catch_up.late":             0,
		"oldest_age_seconds.unsettled.max":  18.4,
		"environment.host.fsync_seconds":    0.0011,
		"faults.0.evidence.blocked_seconds": 0.25,
	} {
		if got, ok, err := r.Lookup(path); got != want || !ok || err != nil {
			t.Errorf("%s is %v, %v, %v; want %v", path, got, ok, err, want)
		}
	}
}

func TestLookupTellsNoSamplesFromNoPath(t *testing.T) {
	t.Parallel()
	r := sample()
	for _, path := range []string{"latency_seconds.relay_lag.p99", "oldest_age_seconds.parking.max", "oldest_age_seconds.tiers.9s.max",
		"messages.parked_by_reason.bad-json", "faults.7.storm.debt_max", "rates.acked_per_second", "environment.host.steal_ratio", "faults.0.storm.area_messages"} {
		r.Rates.Acked = nil
		if got, ok, err := r.Lookup(path); got != 0 || ok || err != nil {
			t.Errorf("%s is %v, %v, %v; want no samples", path, got, ok, err)
		}
	}
	for path, want := range map[string]error{
		"messages.lots": ErrNoPath, "": ErrNoPath, "messages.lost.more": ErrNoPath, "profile.load.rate": ErrNoPath, "faults.x.kind": ErrNoPath, "faults.-1.kind": ErrNoPath,
		"dir": ErrNoPath, "run.started_at.wall": ErrNoPath, "messages.": ErrNoPath, "oldest_age_seconds.tiers.": ErrNoPath,
		"messages": ErrNoNumber, "verdict": ErrNoNumber, "retry_storm.outcome": ErrNoNumber, "latency_seconds.confirm": ErrNoNumber, "environment.colocated": ErrNoNumber, "profile": ErrNoNumber, "faults": ErrNoNumber,
	} {
		if _, ok, err := r.Lookup(path); ok || !errors.Is(err, want) {
			t.Errorf("%q gave %v, %v; want %v", path, ok, err, want)
		}
	}
	if err := CheckPath("latency_second.confirm.p99"); err == nil || !strings.Contains(err.Error(), `did you mean "latency_seconds.confirm.p99"?`) {
		t.Errorf("got %v, want the near path", err)
	}
}

func TestEvaluateNeverPassesWithoutSamples(t *testing.T) {
	t.Parallel()
	var thresholds []profile.Threshold
	for _, text := range []string{"latency_seconds.confirm.p99<50ms", "messages.parked==3", "latency_seconds.relay_lag.p99<1h", "messages.lots>=0", "messages.parked_by_reason.bad-json==0"} {
		th, err := profile.ParseThreshold(text)
		if err != nil {
			t.Fatal(err)
		}
		thresholds = append(thresholds, th)
	}
	want := []ThresholdOutcome{
		{"latency_seconds.confirm.p99<50ms", Number(0.0123), true},
		{"messages.parked==3", Number(2), false},
		{"latency_seconds.relay_lag.p99<1h", nil, false},
		{"messages.lots>=0", nil, false},
		{"messages.parked_by_reason.bad-json==0", nil, false},
	}
	if got := Evaluate(thresholds, sample()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAThresholdOnNoPathIsAProblemOfTheProfile(t *testing.T) {
	t.Parallel()
	text := "name: a\nload: {rate: 1, duration: 1s}\nthresholds:\n  - messages.lost==0\n  - mesages.lost==0\n  - verdict==1\n"
	_, err := profile.Parse(profile.Source{Name: "p.yaml", Data: []byte(text)}, nil, CheckThresholds)
	want := `p.yaml:5:5: thresholds.1: "mesages.lost" is not a path into result.json; did you mean "messages.lost"?
p.yaml:6:5: thresholds.2: "verdict" is not a number in result.json`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
