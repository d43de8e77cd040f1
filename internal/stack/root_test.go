package stack

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// tree makes empty files below a folder.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestARootThatLacksAServerIsNoRoot(t *testing.T) {
	t.Parallel()
	dir := tree(t, "usr/lib/rabbitmq/bin/rabbitmq-server", "usr/bin/prometheus")
	if _, err := FindRoot(dir); !errors.Is(err, ErrNoRoot) {
		t.Errorf("a root without PostgreSQL gives %v, want %v", err, ErrNoRoot)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), filepath.Join(dir, "usr/bin/prometheus"), "/"} {
		if _, err := FindRoot(path); !errors.Is(err, ErrNoRoot) {
			t.Errorf("%s gives %v, want %v", path, err, ErrNoRoot)
		}
	}
}

func TestTheNewestPostgresIsTaken(t *testing.T) {
	t.Parallel()
	r := &Root{Path: tree(t, "usr/lib/postgresql/9/bin/initdb", "usr/lib/postgresql/18/bin/initdb", "usr/lib/postgresql/17/bin/initdb")}
	if got, err := r.program(PostgreSQL); err != nil || got != "/usr/lib/postgresql/18/bin/postgres" {
		t.Errorf("got %q, %v; want that of 18", got, err)
	}
}

func TestUsersComeFromTheRoot(t *testing.T) {
	t.Parallel()
	dir := tree(t, "etc/passwd")
	passwd := "root:x:0:0:root:/root:/bin/sh\nrabbitmq:x:103:107::/:/bin/false\npostgres:x:0:0::/:/bin/sh\n"
	if err := os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte(passwd), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &Root{Path: dir}
	if got, err := r.user("rabbitmq"); err != nil || got != (account{103, 107}) {
		t.Errorf("rabbitmq is %v, %v; want 103, 107", got, err)
	}
	for _, name := range []string{"postgres", "prometheus"} { // one has root's number, one is missing
		if got, err := r.user(name); err == nil {
			t.Errorf("%s is %v, want an error", name, got)
		}
	}
}

func TestRedactedHidesEveryPassword(t *testing.T) {
	t.Parallel()
	got := Addresses{AMQP: "amqp://u:secret@h:1/", Management: "http://u:secret@h:2", Postgres: "postgres://u:secret@h:3/d", Prometheus: "http://h:4",
		Nodes: []Node{{Service: "rabbitmq-2", AMQP: "amqp://u:secret@h:5/", Management: "http://u:secret@h:6"}}}.Redacted()
	want := Addresses{AMQP: "amqp://u:xxxxx@h:1/", Management: "http://u:xxxxx@h:2", Postgres: "postgres://u:xxxxx@h:3/d", Prometheus: "http://h:4",
		Nodes: []Node{{Service: "rabbitmq-2", AMQP: "amqp://u:xxxxx@h:5/", Management: "http://u:xxxxx@h:6"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := redact("amqp://u:se%cret@h/"); got != "(hidden)" {
		t.Errorf("a broken URI is shown as %q", got)
	}
}

func TestARootThatWasNamedIsTakenOrRefused(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, row := range []struct {
		name   string
		source Source
		want   error
	}{
		{"by its name alone", SourceAuto, ErrNoRoot},
		{"with its source", SourceRoot, ErrNoRoot},
		{"but not where another source is asked for", SourceCompose, nil},
	} {
		o := Options{Root: empty, Source: row.source}
		if err := o.CheckRoot(); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
		if row.want == nil {
			continue
		}
		if c, err := Pick(t.Context(), o); !errors.Is(err, row.want) {
			t.Errorf("%s: picked %v, %v; want %v", row.name, c, err, row.want)
		}
		if _, err := Choose(t.Context(), o); !errors.Is(err, row.want) {
			t.Errorf("%s: chosen with %v, want %v", row.name, err, row.want)
		}
		if all := Describe(t.Context(), o); !errors.Is(all[0].Err, ErrNoRoot) || !errors.Is(all[1].Err, errNotAsked) || !errors.Is(all[2].Err, errNotAsked) {
			t.Errorf("%s: described as %v, want none usable", row.name, all)
		}
	}
}
