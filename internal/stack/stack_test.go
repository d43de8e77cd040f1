//go:build linux

package stack

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// start brings a stack up with the built binary and closes it with the test.
func start(t *testing.T, o Options) *Stack {
	t.Helper()
	o.Executable = executable
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n(a missing root is made by: make test)", err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.data.host()); !os.IsNotExist(err) {
			t.Errorf("data folder after Close: %v, want it gone", err)
		}
	})
	return s
}

func query[T any](t *testing.T, uri, sql string) T {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	var value T
	if err := connection.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func execute(t *testing.T, uri, sql string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	if _, err := connection.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestStoppingPostgresKeepsItsDataAndAddress(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{PostgreSQL}})
	uri := s.Addresses().Postgres
	execute(t, uri, "create table kept as select 42 as v")
	if err := s.Stop(t.Context(), PostgreSQL); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), uri); err == nil {
		t.Fatal("a stopped server takes logins")
	}
	if err := s.Start(t.Context(), PostgreSQL); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, s.Addresses().Postgres, "select v from kept"); got != 42 || s.Addresses().Postgres != uri {
		t.Errorf("after a restart the row holds %d at %s, want 42 at %s", got, redact(s.Addresses().Postgres), redact(uri))
	}
}
