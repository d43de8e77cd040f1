package drill

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"spillway/internal/fault"
	"spillway/internal/result"
)

func outcomes() []Outcome {
	observed := 3.0
	failed := &result.Result{
		Run: result.Run{ID: "r", ExitCode: 3}, Verdict: result.Fail, Dir: "results/x",
		Faults:     []result.Fault{{Evidence: map[string]float64{"rounds": 50, "silent_seconds": 1.5}}},
		Thresholds: []result.ThresholdOutcome{{Expression: "messages.parked==0", Observed: &observed}, {Expression: "a>1"}, {Expression: "b>1", OK: true}},
		Messages:   result.Messages{Offered: 10, Applied: 7, Parked: 3},
	}
	invalid := &result.Result{
		Run: result.Run{ExitCode: 5}, Verdict: result.Invalid,
		Findings: []result.Finding{{Severity: result.Info, Message: "no reason"}, {Severity: result.Error, Message: "no mark\x1b[31m"}},
	}
	return []Outcome{
		Of("passes", &result.Result{Verdict: result.Pass}, nil, 1),
		Of("fails", failed, nil, 2),
		Of("proves nothing", invalid, nil, 3),
		Of("cannot be had", nil, fmt.Errorf("fault x: %w: no server of ours", fault.ErrUnavailable), 0),
		Of("does not start", nil, fmt.Errorf("broker: refused"), 0),
	}
}

func TestTheStatusOfADrillFollowsFromItsRun(t *testing.T) {
	t.Parallel()
	all := outcomes()
	for i, want := range []struct {
		status Status
		why    string
	}{{Pass, ""}, {Fail, "messages.parked==0: observed 3; a>1: no samples"}, {Inconclusive, "no mark\x1b[31m"}, {Skipped, "fault x: not available here: no server of ours"}, {Inconclusive, "broker: refused"}} {
		if got := strings.Join(all[i].Reasons, "; "); all[i].Status != want.status || got != want.why {
			t.Errorf("%s is %s (%s), want %s (%s)", all[i].Name, all[i].Status, got, want.status, want.why)
		}
	}
	if e := all[1].Evidence; e["rounds"] != 50 || all[1].ExitCode != 3 || all[1].Folder != "results/x" {
		t.Errorf("%+v", all[1])
	}
}

func TestTheTableShowsEvidenceAndReasonsAndCannotBeDrawnOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Table(&out, outcomes()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rounds 50, silent seconds 1.5, 10 offered, 7 applied, 3 parked", "a>1: no samples", "skipped", "inconclusive"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape reached the terminal")
	}
}

func TestOutcomesAreReadByPrograms(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := JSON(&out, outcomes()); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Schema string
		Drills []Outcome
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read.Schema != "spillway.drills/1" || len(read.Drills) != 5 || read.Drills[3].Status != Skipped {
		t.Errorf("%v: %+v", err, read)
	}
	out.Reset()
	if err := JUnit(&out, outcomes()); err != nil {
		t.Fatal(err)
	}
	var s suite
	if err := xml.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if s.Tests != 5 || s.Failures != 3 || s.Skipped != 1 || s.Cases[1].Failure == nil || s.Cases[3].Skipped == nil || s.Cases[0].Failure != nil {
		t.Errorf("suite %+v", s)
	}
}
