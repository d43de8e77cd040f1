package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

// migrationFiles are applied in the order of their names, each once.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// sqlCreateMigrations makes the record of what was applied. Its presence also marks a schema as spillway's.
const sqlCreateMigrations = `
create table if not exists schema_migration (
    name       text        primary key,
    applied_at timestamptz not null default clock_timestamp()
)`

// migrate applies what the schema does not have yet, inside the caller's transaction.
func migrate(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, sqlCreateMigrations); err != nil {
		return fmt.Errorf("create schema_migration: %w", err)
	}
	files, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted by name
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	for _, file := range files {
		if err := applyMigration(ctx, tx, file); err != nil {
			return fmt.Errorf("migration %s: %w", file, err)
		}
	}
	return nil
}

func applyMigration(ctx context.Context, tx pgx.Tx, file string) error {
	tag, err := tx.Exec(ctx, `insert into schema_migration (name) values ($1) on conflict do nothing`, file)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	text, err := migrationFiles.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, string(text))
	return err
}
