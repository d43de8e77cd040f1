package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// schemaState is what the catalogue says of a schema.
type schemaState struct {
	exists    bool
	marked    bool // Provision created it
	relations int  // tables, views, sequences
	migrated  bool // has a schema_migration table
}

// sqlReadSchema describes the schema $1; $2 is the mark. Indexes and TOAST tables are not counted: they come with their
// tables.
const sqlReadSchema = `
select coalesce(obj_description(n.oid, 'pg_namespace') = $2, false),
       (select count(*) from pg_class c where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')),
       exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'schema_migration')
  from pg_namespace n
 where n.nspname = $1`

func readSchema(ctx context.Context, tx pgx.Tx, schema string) (schemaState, error) {
	var s schemaState
	err := tx.QueryRow(ctx, sqlReadSchema, schema, mark).Scan(&s.marked, &s.relations, &s.migrated)
	if errors.Is(err, pgx.ErrNoRows) {
		return schemaState{}, nil
	}
	if err != nil {
		return schemaState{}, fmt.Errorf("look up schema %q: %w", schema, err)
	}
	s.exists = true
	return s, nil
}

// Drop removes what Provision made: the schema with all in it where Provision created it, and only its tables where the
// schema was there before. Without either it does nothing, so it may be called after a failed Provision and twice.
func (db *DB) Drop(ctx context.Context) error {
	if db.schema == "" {
		return ErrNoSchema
	}
	return db.drop(ctx, db.schema)
}

// DropLeftover removes the schema of an earlier run as Drop does. Name only what Leftovers returned.
func (db *DB) DropLeftover(ctx context.Context, schema string) error { return db.drop(ctx, schema) }

func (db *DB) drop(ctx context.Context, schema string) error {
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		state, err := readSchema(ctx, tx, schema)
		if err != nil {
			return err
		}
		return dropSchema(ctx, tx, schema, state)
	})
	if err != nil {
		return fmt.Errorf("drop schema %q: %w", schema, err)
	}
	return nil
}

func dropSchema(ctx context.Context, tx pgx.Tx, schema string, state schemaState) error {
	name := pgx.Identifier{schema}.Sanitize()
	switch {
	case state.marked:
		_, err := tx.Exec(ctx, "drop schema "+name+" cascade")
		return err
	case state.migrated:
		for _, table := range [...]string{"inbox", "stock", "inventory_outbox", "effect_log", "orders", "outbox", "schema_migration"} {
			if _, err := tx.Exec(ctx, "drop table if exists "+name+"."+table); err != nil {
				return err
			}
		}
	}
	return nil
}

// sqlLeftovers finds the marked schemas that start with $1 and that no session of the same user works on; $2 is the
// mark. A session's application_name starts with its schema.
const sqlLeftovers = `
select n.nspname
  from pg_namespace n
 where starts_with(n.nspname, $1)
   and obj_description(n.oid, 'pg_namespace') = $2
   and not exists (select from pg_stat_activity a where starts_with(a.application_name, n.nspname || ' '))
 order by 1`

// Leftovers returns the schemas of earlier runs whose names start with prefix, in order. A schema that any session
// works on is left out, so a run that goes on in another process keeps its tables.
func (db *DB) Leftovers(ctx context.Context, prefix string) ([]string, error) {
	rows, err := db.pool.Query(ctx, sqlLeftovers, prefix, mark)
	if err != nil {
		return nil, fmt.Errorf("list leftover schemas: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list leftover schemas: %w", err)
	}
	return names, nil
}
