package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/postgres"
)

// database is the side on which effects happen: PostgreSQL, or nothing in a run that looks for the ceiling of broker and
// client. It is safe for concurrent use.
type database interface {
	Provision(ctx context.Context, s postgres.Settings) error
	Drop(ctx context.Context) error
	Close()

	Pool() *pgxpool.Pool // nil without a database
	Schema() string      // "" without a database
	Ping(ctx context.Context) error

	Claims(ctx context.Context, each func(seq int64, instance int) error) error
	Effects(ctx context.Context, each func(postgres.EffectRow) error) error

	Version(ctx context.Context) (string, error)
	Settings(ctx context.Context) (map[string]string, error)
	Stats(ctx context.Context) (postgres.Statistics, error)
	PoolStats() postgres.PoolStats
	PoolWait() time.Duration

	Squeeze(ctx context.Context, leave int) (release func(), err error)
	HoldSnapshot(ctx context.Context) (*postgres.Snapshot, error)
	LockRow(ctx context.Context, sku string) (*postgres.RowLock, error)
}

// openDatabase connects to the run's database, where it has one.
func (r *run) openDatabase(ctx context.Context) (database, error) {
	if !r.o.Profile.NeedsDatabase() {
		return absent{}, nil
	}
	db, err := postgres.Open(ctx, r.databaseConfig(schemaPrefix+r.o.RunID, DatabaseConnections(r.o.Profile), "spillway"))
	if err != nil {
		return nil, environment("database: %w", err)
	}
	return db, nil
}

// databaseConfig returns how to reach the database.
func (r *run) databaseConfig(schema string, conns int, name string) postgres.Config {
	c := postgres.Config{URI: r.o.Servers.Postgres, Schema: schema, MaxConns: conns, ApplicationName: name}
	if r.databaseLink != nil {
		c.Dial = r.databaseLink.Dial
	}
	return c
}

// errNoDatabase is what absent says to every question: the audit reports it, and no statistics are known.
var errNoDatabase = errors.New("this run has no database")

// absent is the database of a run without one. There is nothing to make or to remove, and nothing can be read from it.
type absent struct{}

func (absent) Provision(context.Context, postgres.Settings) error { return nil }
func (absent) Drop(context.Context) error                         { return nil }
func (absent) Close()                                             {}

func (absent) Pool() *pgxpool.Pool        { return nil }
func (absent) Schema() string             { return "" }
func (absent) Ping(context.Context) error { return errNoDatabase }

func (absent) Claims(context.Context, func(int64, int) error) error          { return errNoDatabase }
func (absent) Effects(context.Context, func(postgres.EffectRow) error) error { return errNoDatabase }
func (absent) Version(context.Context) (string, error)                       { return "", errNoDatabase }
func (absent) Settings(context.Context) (map[string]string, error)           { return nil, errNoDatabase }
func (absent) Stats(context.Context) (s postgres.Statistics, err error)      { return s, errNoDatabase }
func (absent) PoolStats() (s postgres.PoolStats)                             { return s }
func (absent) PoolWait() time.Duration                                       { return 0 }

func (absent) Squeeze(context.Context, int) (func(), error)               { return nil, errNoDatabase }
func (absent) HoldSnapshot(context.Context) (*postgres.Snapshot, error)   { return nil, errNoDatabase }
func (absent) LockRow(context.Context, string) (*postgres.RowLock, error) { return nil, errNoDatabase }
