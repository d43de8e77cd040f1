package profile

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// structPaths lists the paths of a type in the order of its fields, as the table does.
func structPaths(t reflect.Type, path string) []string {
	var out []string
	switch {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			child := join(path, key(t.Field(i)))
			out = append(append(out, child), structPaths(t.Field(i).Type, child)...)
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		out = structPaths(t.Elem(), path+"[]")
	case t.Kind() == reflect.Slice && t.Elem() != reflect.TypeFor[byte]():
		out = []string{path + "[]"}
	}
	return out
}

func TestTheTableHasOneRowPerKeyInOrder(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, f := range Fields() {
		rows = append(rows, f.Path)
	}
	if want := structPaths(reflect.TypeFor[Profile](), ""); !slices.Equal(rows, want) {
		t.Errorf("the table has\n%s\nthe structs have\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// typeAt returns the type of a table path.
func typeAt(path string) reflect.Type {
	t := reflect.TypeFor[Profile]()
	for _, part := range strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".") {
		if part == "[]" {
			t = t.Elem()
			continue
		}
		i, _ := member(t, part)
		t = t.Field(i).Type
	}
	return t
}

func TestEveryRowIsDocumentedAndEveryNumberHasARange(t *testing.T) {
	t.Parallel()
	for _, f := range Fields() {
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") && f.Path != "thresholds[]" {
			t.Errorf("%s: its documentation is no sentence: %q", f.Path, f.Doc)
		}
		kind := typeAt(f.Path).Kind()
		number := slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64, reflect.Pointer}, kind)
		if number && f.Range.High <= f.Range.Low {
			t.Errorf("%s: has no range", f.Path)
		}
		if number && f.Default == "" && !f.Need {
			t.Errorf("%s: has neither a default nor is required", f.Path)
		}
	}
}

func TestTheSchemaIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "profile.schema.json")
	if *update {
		if err := os.WriteFile(path, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := Schema(); string(got) != string(want) {
		t.Errorf("the schema has changed; run the tests of this package with -update\n%s", got)
	}
}

func TestTheFaultKindsAreKnownByName(t *testing.T) {
	t.Parallel()
	if got, want := kindNames(), []string{
		"postgres.stop", "postgres.freeze", "postgres.pool-squeeze", "postgres.held-snapshot", "postgres.row-lock",
		"broker.restart", "broker.kill", "broker.freeze", "broker.memory-alarm", "broker.disk-alarm", "broker.close-connections",
		"broker.node-kill", "broker.leader-loss", "broker.partition",
		"topology.binding-removed", "topology.parking-unavailable", "topology.policy-removed",
		"network.delay", "network.jitter", "network.reset", "network.bandwidth", "workers.fail", "workers.kill", "workers.freeze",
	}; !slices.Equal(got, want) {
		t.Errorf("kinds %v, want %v", got, want)
	}
	if _, ok := faultKind("broker.stop"); ok {
		t.Error("an unknown kind was found")
	}
}
