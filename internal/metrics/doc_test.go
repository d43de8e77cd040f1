package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write METRICS.md instead of comparing with it")

const page = "../../METRICS.md"

const head = `# Metrics

What a run serves on ` + "`/metrics`" + ` while it goes on, by default at 127.0.0.1:9464 or the next free port; loopback only. These
series are for watching. Verdicts come from the ledger, and published latencies from full histograms
(see docs/measurement.md), not from the buckets here.

Every series also carries ` + "`run_id` and `profile`" + `. Labels have closed sets of values, shown in brackets; tiers are those of
the profile (here the default ones), and a value from outside its set is counted under ` + "`other`" + `. Counters and gauges
include the warm-up; the latency histograms hold the measured part only, as their meaning says.

This page is made from the code: ` + "`go test ./internal/metrics -run TestThePageOfMetrics -update`" + `.

| name | type | labels | unit | meaning |
|---|---|---|---|---|
`

// free are labels whose values are not a closed set, and constant those that every series has.
var (
	free     = []string{"version", "revision", "goversion"}
	constant = []string{"run_id", "profile"}
)

func TestThePageOfMetricsIsThatOfTheRegistry(t *testing.T) {
	t.Parallel()
	_, reg := setup(t)
	var b strings.Builder
	b.WriteString(head)
	for _, f := range gather(t, reg) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			f.GetName(), strings.ToLower(f.GetType().String()), labels(f), unit(f.GetName()), f.GetHelp())
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("METRICS.md differs from the registry; run this test with -update\nwant:\n%s", b.String())
	}
}

// labels lists the labels of a family with their values.
func labels(f *dto.MetricFamily) string {
	var order []string
	values := make(map[string][]string)
	for _, s := range f.GetMetric() {
		for _, l := range s.GetLabel() {
			name, value := l.GetName(), l.GetValue()
			if slices.Contains(constant, name) {
				continue
			}
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
			if value != "other" && !slices.Contains(values[name], value) {
				values[name] = append(values[name], value)
			}
		}
	}
	for i, name := range order {
		order[i] = "`" + name + "`"
		if !slices.Contains(free, name) {
			order[i] += " (" + strings.Join(values[name], ", ") + ")"
		}
	}
	return strings.Join(order, ", ")
}

// unit reads the unit off a name, where it stands last but for _total.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "messages", "connections"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return "1"
}
