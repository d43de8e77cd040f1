package profile

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const full = `name: full
description: >-
  A paragraph with "quotes", a colon: and a # sign, which is long enough to be folded over several lines when it is
  written out again, since that is how people read it.
labels: {b: "1", a.b: "x: y", "": ~}
`

func TestAMarshalledProfileReadsBackEqual(t *testing.T) {
	t.Parallel()
	p := parseText(t, sound+`seed: 18446744073709551615
description: >-
  A paragraph with "quotes", a colon: and a # sign, which is long enough to be folded over several lines when it is
  written out again, since that is how people read it.
labels: {b: "1", a.b: "x: y", c: "two\nlines ", d: "null", e: "<&>\u2028\u001b"}
workers: {rate_limit: 0.1, service: {distribution: uniform, min: 1500us, max: 90m}}
topology: {tiers: [1.5s, 1h], prefix: "9"}
faults: [{kind: workers.fail, from: 1s, for: 2s, fail: {transient: 0.3333333333333333}}]
thresholds: ["messages.lost==0", "latency_seconds.confirm.p99 < 50ms"]
expect: {shed: any, parked: 12}
`)
	for name, data := range map[string][]byte{"YAML": Marshal(p), "JSON": mustJSON(t, p)} {
		got, err := Parse(Source{Name: name, Data: data}, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%s does not read back:\n%s", name, data)
		}
	}
}

func mustJSON(t *testing.T, p *Profile) []byte {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestALongDescriptionIsFolded(t *testing.T) {
	t.Parallel()
	p := parseText(t, sound, Set{Path: "description", Value: strings.TrimSpace(strings.Repeat("some words ", 20))})
	for _, line := range strings.Split(string(Marshal(p)), "\n") {
		if len(line) > foldAt+indentStep {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

func TestDurationsAreWrittenWithoutZeroParts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"1h": "1h", "90s": "1m30s", "60s": "1m", "0": "0s", "3601s": "1h0m1s", "10m": "10m", "100h": "100h"} {
		d, ok := parseDuration(text)
		if got := durationText(d); !ok || got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}

// FuzzParse holds that no text makes Parse panic, and that what it accepts survives being written out.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{sound, full, "", "a: [", "name: 'x\n\nload: {a: {b: [c, {d: e}]}}", "? a\n: b", "- - - a", "a: |\n  b\n c", "\t", "a: &x *x", "--- !t\n%", "name: \"\\ud800\"", "{name: a, load: {rate: 1, duration: 1}, labels: {x: y}}"} {
		f.Add([]byte(seed), "topology.tiers", "[1s,2s]")
		f.Add([]byte(seed), "labels.x", seed)
		f.Add([]byte(seed), "faults.0.fail", "{transient: 1}")
	}
	f.Fuzz(func(t *testing.T, data []byte, path, value string) {
		for _, sets := range [][]Set{nil, {{Path: path, Value: value}}} {
			p, err := Parse(Source{Name: "f", Data: data}, sets)
			if err != nil {
				continue
			}
			again, err := Parse(Source{Name: "g", Data: Marshal(p)}, nil)
			if err != nil {
				t.Fatalf("does not read back: %v\n%s", err, Marshal(p))
			}
			if !reflect.DeepEqual(p, again) {
				t.Fatalf("reads back differently:\n%s\n%s", Marshal(p), Marshal(again))
			}
		}
	})
}
