// Package postgrestest gives a test a database of its own: a schema with a random name on the server that the
// environment names, provisioned, and dropped when the test ends. Only tests import it.
package postgrestest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"spillway/internal/postgres"
)

// Variable is the environment variable with the address of the server that tests use.
const Variable = "SPILLWAY_TEST_POSTGRES"

// cleanupTimeout bounds the removal of a test's schema, so that a broken server fails the test and does not hang it.
const cleanupTimeout = 30 * time.Second

// URI returns the address of the test server. It fails the test when there is none: an absent server is not a pass.
func URI(tb testing.TB) string {
	tb.Helper()
	uri := os.Getenv(Variable)
	if uri == "" {
		tb.Fatalf("%s is not set; run make test, which starts the servers that this test needs", Variable)
	}
	return uri
}

// SchemaName returns a name that no other test has.
func SchemaName() string { return "spillway_test_" + strings.ToLower(rand.Text()) }

// New returns a provisioned database in a schema of its own, with postgres.DefaultMaxConns connections.
func New(tb testing.TB, s postgres.Settings) *postgres.DB {
	tb.Helper()
	return NewSized(tb, s, 0)
}

// NewSized is New with a pool of the given size; 0 is the default.
func NewSized(tb testing.TB, s postgres.Settings, maxConns int) *postgres.DB {
	tb.Helper()
	db := Open(tb, postgres.Config{URI: URI(tb), Schema: SchemaName(), MaxConns: maxConns})
	if err := db.Provision(tb.Context(), s); err != nil {
		tb.Fatalf("provision the test's schema: %v", err)
	}
	return db
}

// Open opens a database by a config of the test's own. What the test provisions in it is dropped when the test ends, and
// the pool closed.
func Open(tb testing.TB, c postgres.Config) *postgres.DB {
	tb.Helper()
	db, err := postgres.Open(tb.Context(), c)
	if err != nil {
		tb.Fatalf("open the test's database: %v", err)
	}
	tb.Cleanup(func() {
		defer db.Close()
		if db.Schema() == "" {
			return
		}
		// The test's own context is done by now.
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := db.Drop(ctx); err != nil {
			tb.Errorf("drop the test's schema: %v", err)
		}
	})
	return db
}
