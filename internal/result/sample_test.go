package result

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a committed file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed; if that is meant, run with -update. Now it is:\n%s", path, got)
	}
}

// sample is a result of an outage with every kind of value in it.
func sample() *Result {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &Result{
		Run: Run{ID: "20260301-120000-outage", Name: "outage", StartedAt: start, FinishedAt: start.Add(71300 * time.Millisecond),
			Labels: map[string]string{"branch": "main"}, Version: "0.1.0", Revision: "0123456789ab", Seed: 42,
			Instances: []Instance{{ID: 0, Offered: 16000}}},
		Environment: Environment{Host: Host{OS: "linux", Kernel: "6.1", CPUs: 2, MemoryBytes: 8 << 30, FsyncSeconds: Number(0.0011)},
			Broker: Broker{Product: "RabbitMQ", Version: "4.3.6", Nodes: new(int64(1))}, Postgres: Postgres{Version: "18.6", Settings: map[string]string{"fsync": "on"}},
			Go: "go1.26", Colocated: true},
		Profile: json.RawMessage(`{"name":"outage"}`),
		Phases:  []Phase{{"warm-up", 0, 5}, {"load", 5, 45}, {"drain", 45, 60.5}},
		Faults: []Fault{{Kind: "postgres.stop", StartSeconds: 13, EndSeconds: 28.4, Evidence: map[string]float64{"errors": 5210, "blocked_seconds": 0.25},
			Storm: sampleStorm()}},
		Verdict:    Pass,
		Findings:   []Finding{{Info, "host.steal.unknown", "the share of stolen CPU time is not known"}, {Warning, "schedule.lag", "p99 of the schedule lag was 3 ms"}},
		Thresholds: []ThresholdOutcome{{"latency_seconds.confirm.p99<50ms", Number(0.0123), true}, {"retry_storm.amplification>1.2", Number(1.62), true}},
		Messages: Messages{Offered: 16000, Confirmed: 16000, Publishes: 16003, Republished: 3, Delivered: 25980, Redelivered: 12,
			Applied: 15988, Refused: 10, DuplicateDeliveries: 2, RetriesScheduled: 9970, Parked: 2, ParkedByReason: map[string]int64{"attempts": 2, "age": 0},
			RetriesPerMessage: map[string]int64{"0": 10000, "1": 6000}},
		Rates: Rates{Offered: Number(400), Confirmed: Number(400), Delivered: Number(649.5), Acked: Number(649.2), Applied: Number(399.7), Parked: Number(0.05)},
		Latency: Latencies{Confirm: &Latency{14000, 0.0004, 0.002, 0.0011, 0.0041, 0.006, 0.0123, 0.0404, 0.0912},
			Sojourn: &Latency{14000, 0.001, 4.2, 0.0052, 14.1, 15.5, 17.25, 17.9, 18.4}},
		OldestAge: OldestAges{Work: &Age{0.002, 0.3, 1.2, 0}, Retry: &Age{0, 14.2, 15.1, 0}, Unsettled: &Age{0.011, 17.8, 18.4, 0},
			Tiers: map[string]*Age{"5s": {0, 0.25, 0.31, 0}, "30s": {0, 1.5, 1.82, 0}}},
		RetryStorm: *sampleStorm(),
		Inbox: Inbox{AppliedPerSecond: Number(399.7), DuplicatesAbsorbed: 2, Events: &Events{Refused: 10, Rows: 10, Distinct: 10, Duplicates: 3,
			Relay: &Relay{Batches: 6, Published: 13, Duplicates: 3, Kills: 1}}},
		Signals: Signals{BlockedSeconds: Number(0.25), Reconnects: 2, CatchUp: CatchUp{Policy: "none"}},
		Process: Process{CPUSeconds: Number(21.5), MaxRSSBytes: 64 << 20, GOMAXPROCS: 2, CPUShareOfMachine: Number(0.27),
			CPUShareOfGOMAXPROCS: Number(0.27), GCPauseP99Seconds: Number(0.003), GoroutineWaitP99Seconds: Number(0.0005), ThreadWaitMeanSeconds: Number(0.00005), ThreadWaitRatio: Number(0.6)},
	}
}

func sampleStorm() *Storm {
	return &Storm{Amplification: Number(1.62), BaselinePerSecond: Number(400), PeakReturnsPerSecond: Number(1380), Synchronisation: Number(2.4),
		DebtMax: Number(5210), RecoverySeconds: Number(6.25), Outcome: StormRecovered}
}
