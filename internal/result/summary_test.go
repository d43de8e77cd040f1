package result

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func summaryOf(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := Summary(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheSummaryOfAPassedOutage(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Dir, r.Files = "results/20260301-120000-outage", []string{FileResult, FileProfile, FileSeries}
	golden(t, "summary-pass.txt", summaryOf(t, r))
}

func TestTheSummaryOfABrokenGuarantee(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Verdict, r.Messages.Lost, r.Messages.DuplicateEffects, r.Faults, r.RetryStorm = Fail, 3, 1200, nil, Storm{}
	r.Findings = append(r.Findings, Finding{Error, "guarantee.lost", "3 confirmed messages were found nowhere"})
	r.Thresholds = append(r.Thresholds, ThresholdOutcome{Expression: "latency_seconds.relay_lag.p99<1s"})
	golden(t, "summary-fail.txt", summaryOf(t, r))
}

func TestTheSummaryOfARunThatMeasuredNothing(t *testing.T) {
	t.Parallel()
	golden(t, "summary-empty.txt", summaryOf(t, &Result{Verdict: Invalid}))
}

func TestTheSummaryOfAMissedThresholdInTwoFaults(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Verdict, r.Thresholds[0] = Fail, ThresholdOutcome{"latency_seconds.confirm.p99<5ms", Number(0.0123), false}
	r.Faults = append(r.Faults, Fault{Kind: "workers.fail", StartSeconds: 30, EndSeconds: 130, Storm: &Storm{Outcome: StormMetastable}})
	golden(t, "summary-missed.txt", summaryOf(t, r))
}

func TestAForgottenVerdictIsNoPass(t *testing.T) {
	t.Parallel()
	if got := summaryOf(t, &Result{}); !strings.HasPrefix(got, "NO VERDICT") {
		t.Errorf("got %q", got[:20])
	}
}

func TestTextFromOutsideCannotDrawOnTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2J\u202eb\nPASS\x9b"
	r := sample()
	r.Run.ID, r.Run.Name, r.Run.Version = evil, evil, evil
	r.Run.Labels = map[string]string{evil: evil}
	r.Environment.Broker = Broker{Product: evil, Version: evil}
	r.Environment.Postgres.Version = evil
	r.Findings = []Finding{{Severity(evil), evil, evil}}
	r.Thresholds = []ThresholdOutcome{{Expression: evil}}
	r.Messages.ParkedByReason = map[string]int64{evil: 1}
	r.OldestAge.Tiers = map[string]*Age{evil: {}}
	r.Faults = []Fault{{Kind: evil, Evidence: map[string]float64{evil: 1}, Storm: &Storm{Outcome: evil}}}
	r.RetryStorm.Outcome = evil
	r.Dir, r.Files = evil, []string{evil}
	got := summaryOf(t, r)
	for _, c := range got {
		if c != '\n' && (c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' || c == '\ufffd') {
			t.Fatalf("the character %U came through:\n%q", c, got)
		}
	}
	if strings.Contains(got, "\nPASS") {
		t.Error("a name began a line of its own")
	}
}

func TestSummaryReturnsTheWritersError(t *testing.T) {
	t.Parallel()
	if err := Summary(fullDisk{}, sample()); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := whole(n); got != want {
			t.Errorf("whole(%d) is %s, want %s", n, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0 s", 0.0000123: "12 µs", 0.00085: "850 µs", 0.0012345: "1.23 ms", 0.0123: "12.3 ms", 0.999: "999 ms", 0.9999: "1.00 s",
		4.557: "4.56 s", 71.3: "71.3 s", 119.99: "2 min 0 s", 125: "2 min 5 s", 100000: "1,666 min 40 s", -0.5: "-500 ms", -125: "-2 min 5 s", 0.0009999: "1.00 ms"} {
		if got := span(x); got != want {
			t.Errorf("span(%v) is %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0", 5: "5", 1.617: "1.62", 12.34: "12.3", 1234.5: "1,235", 0.00123: "0.00123", 1e20: "1e+20"} {
		if got := number3(x); got != want {
			t.Errorf("number3(%v) is %s, want %s", x, got, want)
		}
	}
}
