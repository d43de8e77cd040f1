package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sampleSection(name, machine string, at time.Time) section {
	t := target{Measure: "speed of " + name, Unit: "x", Bound: new(1.5), Digits: 2}
	return section{
		Name: name, Title: "About " + name, At: at, TookSeconds: 83, Machine: machine, About: about{"0.1.0", "0123456789ab", "RabbitMQ 4.3.6", "go1.26"},
		OthersMedian: 0.2, OthersMax: 0.9, StealMax: 0.001, Text: "How it was measured.", Rows: []row{t.of(interval{1.6, 2, 2.5}, 10, "200/s", "100/s")},
		Notes: []string{"One thing.", "Another."}, Runs: table{Columns: []string{"pair", "a"}, Lines: [][]string{{"1", "200"}}},
	}
}

func TestThePageHasEveryRowMeasuredOrNot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, err := render(map[string]section{
		"plain-loop": sampleSection("plain-loop", "the newer machine", now), "relay": sampleSection("relay", "the older machine", now.Add(-time.Hour)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- Machine: the newer machine\n- RabbitMQ 4.3.6, go1.26\n",
		"| speed of plain-loop | 200/s | 100/s | 2.00x | 1.60 to 2.50 | at least 1.5x |  | met |\n",
		"| outbox", // of relay's own targets nothing: its section stands for them
		"| inbox fed from memory, batch against transaction, one hot SKU |  |  |  |  | at least 8x | at least 20x | not measured |\n",
		"| not measured: make bench-memory |\n",
		"## About plain-loop\n\n2026-03-01, spillway 0.1.0 (0123456789ab), 1m23s, others 20 % (median; 90 % at most), a hypervisor took 0.10 % at most.\n\nHow it was measured.\n\n- One thing.\n- Another.\n\n| pair | a |\n|---|---|\n| 1 | 200 |\n",
		"1m23s, on another machine: the older machine, others",
	} {
		if has := strings.Contains(text, want); has == (want == "| outbox") {
			t.Errorf("%q is there: %v\n%s", want, has, text)
		}
	}
	if strings.Count(text, "on another machine") != 1 {
		t.Error("a section of the newest machine is said to be of another")
	}
	if before, after, _ := strings.Cut(text, "## About plain-loop"); !strings.Contains(after, "## About relay") || strings.Contains(before, "## About") {
		t.Error("the sections are not in the order of the measures")
	}
}

func TestSectionsAreKeptBesideThePage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	first, err := openBook(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := sampleSection("relay", "m", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err := first.keep(kept); err != nil {
		t.Fatal(err)
	}
	second, err := openBook(path)
	if err != nil || !reflect.DeepEqual(second.sections, map[string]section{"relay": kept}) {
		t.Fatalf("read again %+v, %v", second.sections, err)
	}
	if err := second.write(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "## About relay") {
		t.Errorf("%s, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(first.dir, "relay.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openBook(path); err == nil || !strings.Contains(err.Error(), "relay") {
		t.Errorf("a broken section gives %v", err)
	}
}
