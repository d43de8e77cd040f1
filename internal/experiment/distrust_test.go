package experiment

import (
	"errors"
	"maps"
	"testing"
	"time"

	"spillway/internal/fault"
	"spillway/internal/latency"
	"spillway/internal/ledger"
	"spillway/internal/probe"
	"spillway/internal/profile"
	"spillway/internal/result"
	"spillway/internal/stack"
	"spillway/internal/timebase"
)

// trusted is a run of which nothing is to be distrusted.
func trusted() *run {
	r := &run{
		o: Options{Profile: &profile.Profile{}}, base: timebase.New(), latencies: latency.NewSet(), lag: latency.NewRecorder("pacer_lag"),
		probe:    probe.New(probe.Config{}),
		account:  ledger.Account{Offered: 200, Confirmed: 200, Applied: 200, Publishes: 200},
		timeline: fault.NewTimeline(timebase.New(), nil, nil),
	}
	for range 200 {
		r.latencies.Confirm.Record(time.Millisecond)
		r.lag.Record(time.Millisecond)
	}
	return r
}

func TestWhatMakesARunUntrustworthyIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(*run)
		code  string
	}{
		"nothing does":                    {func(*run) {}, ""},
		"a generator that always lags":    {func(r *run) { many(r.lag, 400, 20*time.Millisecond) }, "generator-lagged"},
		"a generator that lagged once":    {func(r *run) { many(r.lag, 10, time.Second) }, "generator-lagged"},
		"a value above the range":         {func(r *run) { r.latencies.Sojourn.Record(2 * latency.Max) }, "recorder-overflow"},
		"too few samples":                 {func(r *run) { r.latencies = latency.NewSet() }, "too-few-samples"},
		"a run cut short":                 {func(r *run) { r.outOfTime = true }, "out-of-time"},
		"a server that died":              {func(r *run) { r.deaths.list = []stack.Death{{Service: "postgres", Err: errors.New("killed")}} }, "server-died"},
		"a fault that was left out":       {func(r *run) { r.o.Profile.Faults = []profile.Fault{{Kind: "workers.fail"}} }, "fault-missing"},
		"an account that does not add":    {func(r *run) { r.account.Applied = 1 }, "account"},
		"a place that was not read":       {func(r *run) { r.account.Unaudited = []string{"the queues"} }, "account"},
		"a process that took everything":  {func(r *run) { took(r, time.Hour) }, "own-cpu"},
		"one that took little":            {func(r *run) { took(r, time.Millisecond) }, ""},
		"a closed load that took it all":  {func(r *run) { took(r, time.Hour); r.o.Profile.Load.Mode = profile.LoadClosed }, ""},
		"a fault left out by a Ctrl-C":    {func(r *run) { r.o.Profile.Faults, r.interrupted = []profile.Fault{{}}, true }, ""},
		"one late arrival of many is not": {func(r *run) { many(r.lag, 1, time.Second) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, res := trusted(), &result.Result{}
			tt.spoil(r)
			distrusted := r.reasonsForDistrust(res)
			if distrusted != (tt.code != "") || distrusted && res.Findings[0].Code != tt.code {
				t.Errorf("distrusted %v, findings %v, want %q", distrusted, res.Findings, tt.code)
			}
		})
	}
}

func TestABusyMachineOnlyWarnsWhereTheProfileExpectsIt(t *testing.T) {
	t.Parallel()
	r, res := trusted(), &result.Result{}
	r.o.Profile.Expect.BusyMachine = true
	many(r.lag, 400, 20*time.Millisecond)
	took(r, time.Hour)
	r.drained = true
	if r.reasonsForDistrust(res) {
		t.Errorf("distrusted: %v", res.Findings)
	}
	r.remarks(res)
	codes := map[string]result.Severity{}
	for _, f := range res.Findings {
		codes[f.Code] = f.Severity
	}
	if want := (map[string]result.Severity{"generator-lagged": result.Warning, "own-cpu": result.Warning}); !maps.Equal(codes, want) {
		t.Errorf("findings %v, want %v", codes, want)
	}
	if r.outOfTime = true; !r.reasonsForDistrust(&result.Result{}) {
		t.Error("what else spoils a run does not make this one invalid")
	}
}

// took lets the process have taken so much processor time in a measured load of a second.
func took(r *run, cpu time.Duration) {
	r.measured.start = reading{taken: true, at: time.Second}
	r.measured.end = reading{taken: true, at: 2 * time.Second, self: totals{cpu: cpu}}
}

func many(r *latency.Recorder, n int, d time.Duration) {
	for range n {
		r.Record(d)
	}
}
