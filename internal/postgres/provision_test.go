package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

func open(t *testing.T, schema string) *postgres.DB {
	t.Helper()
	return postgrestest.Open(t, postgres.Config{URI: postgrestest.URI(t), Schema: schema, MaxConns: 2})
}

func exec(t *testing.T, db *postgres.DB, sql string) {
	t.Helper()
	if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func scan[T any](t *testing.T, db *postgres.DB, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.Pool().QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func schemaExists(t *testing.T, db *postgres.DB) bool {
	t.Helper()
	return scan[bool](t, db, `select exists (select from pg_namespace where nspname = $1)`, db.Schema())
}

func TestProvisionFillsTheStock(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 1500, InitialStock: 7})
	if got := scan[int](t, db, `select count(*) from stock where available = 7 and reserved = 0`); got != 1500 {
		t.Errorf("%d SKUs hold 7, want 1500", got)
	}
	for _, i := range []int{0, 1499} {
		if !scan[bool](t, db, `select exists (select from stock where sku = $1)`, postgres.SKU(i)) {
			t.Errorf("there is no %s", postgres.SKU(i))
		}
	}
}

func TestSKUNamesAreFixed(t *testing.T) {
	t.Parallel()
	if a, b := postgres.SKU(123), postgres.SKU(12345678); a != "SKU-000123" || b != "SKU-12345678" {
		t.Errorf("names are %s and %s", a, b)
	}
}

func TestProvisionRecordsItsMigrationsAndRunsEachOnce(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 3, InitialStock: 1})
	if err := db.Provision(t.Context(), postgres.Settings{SKUs: 2, InitialStock: 9}); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) < 2 {
		t.Fatalf("migrations %q, %v", files, err)
	}
	if got := scan[string](t, db, `select string_agg(name, ',' order by name) from schema_migration`); got != strings.Join(files, ",") {
		t.Errorf("recorded %q, want %q", got, files)
	}
	if got := scan[int64](t, db, `select sum(available)::bigint from stock`); got != 18 {
		t.Errorf("the stock holds %d, want that of the second call, 18", got)
	}
}

func TestProvisionRefusesAnotherRunsMessages(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, `insert into inbox values ('00000000-0000-7000-8000-000000000001', 0, 0)`)
	err := db.Provision(t.Context(), postgres.Settings{})
	if !errors.Is(err, postgres.ErrSchemaTaken) {
		t.Errorf("error is %v, want ErrSchemaTaken", err)
	}
}

func TestProvisionRefusesForeignTablesAndDropLeavesThem(t *testing.T) {
	t.Parallel()
	db := open(t, postgrestest.SchemaName())
	name := pgx.Identifier{db.Schema()}.Sanitize()
	exec(t, db, "create schema "+name)
	t.Cleanup(func() { _, _ = db.Pool().Exec(context.WithoutCancel(t.Context()), "drop schema "+name+" cascade") })
	exec(t, db, "create table theirs ()")
	if err := db.Provision(t.Context(), postgres.Settings{}); !errors.Is(err, postgres.ErrSchemaTaken) {
		t.Errorf("error is %v, want ErrSchemaTaken", err)
	}
	if err := db.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !scan[bool](t, db, `select to_regclass('theirs') is not null`) {
		t.Error("Drop removed a table that Provision had not made")
	}
}

func TestAPreparedSchemaIsUsedAndKept(t *testing.T) {
	t.Parallel()
	db := open(t, postgrestest.SchemaName())
	name := pgx.Identifier{db.Schema()}.Sanitize()
	exec(t, db, "create schema "+name)
	t.Cleanup(func() { _, _ = db.Pool().Exec(context.WithoutCancel(t.Context()), "drop schema "+name+" cascade") })
	if err := db.Provision(t.Context(), postgres.Settings{SKUs: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := scan[int](t, db, `select count(*) from pg_class where relnamespace = to_regnamespace($1)`, name)
	if !schemaExists(t, db) || left != 0 {
		t.Errorf("schema kept: %t, tables left: %d; want it kept and empty", schemaExists(t, db), left)
	}
}

func TestAFailedProvisionLeavesNothing(t *testing.T) {
	t.Parallel()
	db := open(t, postgrestest.SchemaName())
	err := db.Provision(t.Context(), postgres.Settings{SKUs: 1, InitialStock: -1}) // the last step breaks the check
	if postgres.Classify(err) != postgres.Permanent {
		t.Errorf("error is %v, want a check violation", err)
	}
	if schemaExists(t, db) {
		t.Error("the schema is there")
	}
}

func TestDropRemovesAllAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 1})
	for range 2 {
		if err := db.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if schemaExists(t, db) {
			t.Fatal("the schema is there")
		}
	}
}

func TestWithoutASchemaNothingIsProvisioned(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	nothing := func(postgres.EffectRow) error { return nil }
	for name, err := range map[string]error{
		"provision": db.Provision(t.Context(), postgres.Settings{}),
		"drop":      db.Drop(t.Context()),
		"effects":   db.Effects(t.Context(), nothing),
	} {
		if !errors.Is(err, postgres.ErrNoSchema) {
			t.Errorf("%s: error is %v, want ErrNoSchema", name, err)
		}
	}
}

func TestLeftoversAreSchemasThatNobodyWorksOn(t *testing.T) {
	t.Parallel()
	prefix := postgrestest.SchemaName()
	used, watcher := open(t, prefix+"_b"), open(t, "")
	left, err := postgres.Open(t.Context(), postgres.Config{URI: postgrestest.URI(t), Schema: prefix + "_a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []*postgres.DB{left, used} {
		if err := db.Provision(t.Context(), postgres.Settings{}); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, watcher, "create schema "+prefix+"_c") // not marked: not ours
	t.Cleanup(func() { _, _ = watcher.Pool().Exec(context.WithoutCancel(t.Context()), "drop schema "+prefix+"_c") })
	left.Close()
	await(t, "the closed pool's sessions to end", func() bool {
		return scan[int](t, watcher, `select count(*) from pg_stat_activity where starts_with(application_name, $1)`, left.Schema()+" ") == 0
	})
	got, err := watcher.Leftovers(t.Context(), prefix)
	if err != nil || !slices.Equal(got, []string{left.Schema()}) {
		t.Fatalf("leftovers are %q, %v; want %q", got, err, left.Schema())
	}
	if err := watcher.DropLeftover(t.Context(), left.Schema()); err != nil {
		t.Fatal(err)
	}
	if got, _ := watcher.Leftovers(t.Context(), prefix); len(got) != 0 {
		t.Errorf("left after the drop: %q", got)
	}
}

func TestAUserWithoutTheRightIsToldWhatToGrant(t *testing.T) {
	t.Parallel()
	admin := open(t, "")
	role := postgrestest.SchemaName()
	exec(t, admin, "create role "+role+" login password 'hush'")
	t.Cleanup(func() { _, _ = admin.Pool().Exec(context.WithoutCancel(t.Context()), "drop role "+role) })
	uri := withURI(t, func(u *url.URL) { u.User = url.UserPassword(role, "hush") })
	db, err := postgres.Open(t.Context(), postgres.Config{URI: uri, Schema: postgrestest.SchemaName()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Provision(t.Context(), postgres.Settings{})
	if !errors.Is(err, postgres.ErrRightMissing) || !strings.Contains(err.Error(), "GRANT CREATE ON DATABASE") || strings.Contains(err.Error(), "hush") {
		t.Errorf("error is %v, want ErrRightMissing with what to grant", err)
	}
	for _, check := range db.Doctor(t.Context()) {
		if check.OK != (check.Name != "create schemas") {
			t.Errorf("check %+v", check)
		}
	}
}
