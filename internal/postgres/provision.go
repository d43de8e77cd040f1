package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Settings says what the run's stock holds at the start.
type Settings struct {
	SKUs         int   // distinct SKUs, named SKU(0) to SKU(SKUs-1); 0 or more
	InitialStock int64 // units available of each; 0 or more
	// InboxPartition splits the inbox into partitions by the time in the id, each so wide; 0 leaves it in one piece.
	InboxPartition time.Duration
}

// mark is the comment on a schema that Provision created. Drop and Leftovers touch no schema without it.
const mark = "made by spillway for one run"

// SKU returns the name of the i-th SKU, from 0.
func SKU(i int) string { return fmt.Sprintf("SKU-%06d", i) }

// Provision creates the run's schema, applies the migrations and fills the stock, in one transaction: on error nothing
// is left behind. A schema that exists already may be empty or provisioned before without messages; otherwise the error
// wraps ErrSchemaTaken. A missing right is ErrRightMissing, and what to grant is in its text.
func (db *DB) Provision(ctx context.Context, s Settings) error {
	if db.schema == "" {
		return ErrNoSchema
	}
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return db.provision(ctx, tx, s) })
	if err == nil {
		return nil
	}
	if sqlState(err) == "42501" {
		return db.rightMissing(err)
	}
	return fmt.Errorf("provision schema %q: %w", db.schema, err)
}

func (db *DB) provision(ctx context.Context, tx pgx.Tx, s Settings) error {
	if err := db.createSchema(ctx, tx); err != nil {
		return err
	}
	if err := migrate(ctx, tx); err != nil {
		return err
	}
	if err := db.refuseMessages(ctx, tx); err != nil {
		return err
	}
	if s.InboxPartition > 0 {
		if err := partitionInbox(ctx, tx, time.Now(), s.InboxPartition); err != nil {
			return err
		}
	}
	return seed(ctx, tx, s)
}

// createSchema creates and marks the schema, unless it is there already and either empty or spillway's.
func (db *DB) createSchema(ctx context.Context, tx pgx.Tx) error {
	state, err := readSchema(ctx, tx, db.schema)
	switch {
	case err != nil:
		return err
	case state.exists && state.relations > 0 && !state.migrated:
		return fmt.Errorf("%w: %q holds tables that are not spillway's; name another or empty it", ErrSchemaTaken, db.schema)
	case state.exists:
		return nil
	}
	name := pgx.Identifier{db.schema}.Sanitize()
	_, err = tx.Exec(ctx, "create schema "+name+"; comment on schema "+name+" is '"+mark+"'")
	return err
}

// refuseMessages stops a run on tables that hold another run's messages, which its account would count as its own.
func (db *DB) refuseMessages(ctx context.Context, tx pgx.Tx) error {
	var used bool
	const query = `select exists (select from inbox) or exists (select from effect_log) or exists (select from orders)`
	if err := tx.QueryRow(ctx, query).Scan(&used); err != nil {
		return err
	}
	if used {
		return fmt.Errorf("%w: %q holds the messages of another run; drop it or name another", ErrSchemaTaken, db.schema)
	}
	return nil
}

// seed fills the stock. The names come from SKU, never from SQL, so that there is one rule for them.
func seed(ctx context.Context, tx pgx.Tx, s Settings) error {
	if _, err := tx.Exec(ctx, `truncate stock`); err != nil {
		return err
	}
	rows := pgx.CopyFromSlice(s.SKUs, func(i int) ([]any, error) { return []any{SKU(i), s.InitialStock}, nil })
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"stock"}, []string{"sku", "available"}, rows); err != nil {
		return fmt.Errorf("fill the stock: %w", err)
	}
	_, err := tx.Exec(ctx, `analyze stock`) // a fresh table without statistics is planned as if it were empty
	return err
}

func (db *DB) rightMissing(err error) error {
	user, database := login(db.uri)
	return fmt.Errorf("%w: %s, user %q: %w; GRANT CREATE ON DATABASE %s TO %s, or prepare an empty schema that it owns",
		ErrRightMissing, place(db.uri), user, rootCause(err),
		pgx.Identifier{database}.Sanitize(), pgx.Identifier{user}.Sanitize())
}
