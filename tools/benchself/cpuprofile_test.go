package main

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/pprof/profile"
)

// profileOf makes a CPU profile of stacks, leaf first, a sample of 10 ms for each.
func profileOf(t *testing.T, stacks ...[]string) *bytes.Buffer {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10_000_000,
	}
	for _, stack := range stacks {
		s := &profile.Sample{Value: []int64{1, 10_000_000}}
		for _, name := range stack {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			l := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, s.Location = append(p.Function, f), append(p.Location, l), append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestASampleBelongsToTheObserverOnItsStack(t *testing.T) {
	t.Parallel()
	got, err := observingShares(profileOf(t,
		[]string{"sync.(*Mutex).Lock", "spillway/internal/ledger.(*Ledger).update", "spillway/internal/event.Load.Settled", "spillway/loadgen/publish.(*Publisher).settled"},
		[]string{"spillway/internal/event.Work.Acked", "spillway/workers.(*session).loop"},
		[]string{"syscall.Write", "spillway/internal/latency.(*Log).write", "spillway/internal/experiment.(*watch).tick", "spillway/internal/probe.(*Probe).view"},
		[]string{"compress/flate.(*compressor).deflate", "github.com/prometheus/client_golang/prometheus/promhttp.HandlerForTransactional.func1", "net/http.(*conn).serve"},
		[]string{"syscall.Write", "spillway/internal/broker/rabbit.(*wire).flush"},
		[]string{"spillway/internal/experiment.(*run).preflight"},
		[]string{"runtime.gcBgMarkWorker"},
		[]string{"spillway/internal/eventual.Load.Nothing"},
	))
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]float64{"ledger": 0.125, "event": 0.125, "probe": 0.125, "libraries": 0.125} {
		if math.Abs(got[who]-want) > 1e-9 {
			t.Errorf("%s has %v, want %v", who, got[who], want)
		}
	}
	if len(got) != 4 || math.Abs(got.sum()-0.5) > 1e-9 {
		t.Errorf("shares %v, want four that add up to a half", got)
	}
}

func TestAProfileWithoutSamplesIsNoZero(t *testing.T) {
	t.Parallel()
	if _, err := observingShares(profileOf(t)); !errors.Is(err, errEmptyProfile) {
		t.Errorf("an empty profile gives %v", err)
	}
	if _, err := observingShares(bytes.NewReader([]byte("no profile"))); err == nil {
		t.Error("text is taken for a profile")
	}
}
