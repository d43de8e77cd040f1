// Package postgres is the database side of a run: one pool on one server, a schema of its own per run with its
// migrations, the classes of database errors, statistics, and the truth that the audit reads at the end.
//
// It holds no business rule: claiming and reserving live in workers/inbox, which takes the pool from here. A run's
// tables are found through the connections' search_path, so SQL elsewhere names tables without a schema.
//
// Invariants: Provision is one transaction, so a failed one leaves nothing behind; Drop removes only what Provision
// made; nothing here logs or returns a password.
package postgres

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Limits of a Config.
const (
	// MinVersion is the oldest major version that is accepted.
	MinVersion = 14
	// DefaultMaxConns is the size of the pool when the caller gives none.
	DefaultMaxConns = 8
	// DefaultConnectTimeout bounds one attempt to connect when the caller gives no bound.
	DefaultConnectTimeout = 5 * time.Second
	// MaxSchemaBytes bounds a schema's name. PostgreSQL cuts identifiers at 63 bytes in silence; two are kept back so
	// that the name still ends visibly in the application_name that it starts.
	MaxSchemaBytes = 61
)

// Config says which server to use and how.
type Config struct {
	// URI is a URI (postgres://user:password@host:port/database?sslmode=...) or a keyword/value string. TLS is set by
	// its sslmode, sslrootcert, sslcert and sslkey; what it leaves out comes from the usual PG... environment
	// variables and the password file.
	URI string
	// Schema is the run's schema, 1 to MaxSchemaBytes bytes, the search_path of every connection. "" leaves the
	// server's search_path; Provision and what reads the tables then return ErrNoSchema.
	Schema string
	// MaxConns sizes the pool: the workers' handlers that run at once, and one for statistics. 0 is DefaultMaxConns.
	MaxConns int
	// ConnectTimeout bounds one attempt to connect, and the check of a connection that lay idle. 0 is
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Dial makes the connections, for a way that leads through something; nil is the usual one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ApplicationName is shown by pg_stat_activity after the schema. "" is "spillway".
	ApplicationName string
}

// DB is a pool of connections to the run's schema. It is safe for concurrent use; the caller closes it.
type DB struct {
	pool   *pgxpool.Pool
	uri    string // as given, with its password; only ever shown through Redact
	schema string
}

// Open connects to the server and returns once one connection stands and the server's version is known. It tries once
// and fails at once when the server refuses, and after ConnectTimeout when it does not answer. Its errors wrap
// ErrBadURI, ErrUnreachable, ErrLoginRefused, ErrRightMissing, ErrNoDatabase, ErrFull or ErrTooOld, and are one
// sentence fit for a user.
func Open(ctx context.Context, c Config) (*DB, error) {
	pc, err := c.pool()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open the pool on %s: %w", Redact(c.URI), err)
	}
	db := &DB{pool: pool, uri: c.URI, schema: c.Schema}
	if err := db.greet(ctx, pc.ConnConfig.ConnectTimeout); err != nil {
		pool.Close()
		return nil, err
	}
	return db, nil
}

// pool turns the config into the driver's.
func (c *Config) pool() (*pgxpool.Config, error) {
	if len(c.Schema) > MaxSchemaBytes {
		return nil, fmt.Errorf("%w: %q has %d bytes, at most %d fit", ErrBadSchema, c.Schema, len(c.Schema), MaxSchemaBytes)
	}
	pc, err := pgxpool.ParseConfig(c.URI)
	if err != nil {
		return nil, badURI(c.URI, err)
	}
	pc.MaxConns = int32(min(orDefault(c.MaxConns, DefaultMaxConns), math.MaxInt32))
	pc.ConnConfig.ConnectTimeout = orDefault(c.ConnectTimeout, DefaultConnectTimeout)
	pc.PingTimeout = pc.ConnConfig.ConnectTimeout
	if c.Dial != nil {
		pc.ConnConfig.DialFunc = c.Dial
	}
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = applicationName(c.Schema, c.ApplicationName)
	if c.Schema != "" {
		params["search_path"] = pgx.Identifier{c.Schema}.Sanitize()
	}
	return pc, nil
}

// applicationName puts the schema first, so that Leftovers can tell a schema in use by the sessions on it.
func applicationName(schema, name string) string {
	name = orDefault(name, "spillway")
	if schema == "" {
		return name
	}
	return schema + " " + name
}

// greet makes the first connection and reads the server's version from it.
func (db *DB) greet(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return openError(db.uri, err)
	}
	defer conn.Release()
	version := conn.Conn().PgConn().ParameterStatus("server_version")
	if major(version) < MinVersion {
		return fmt.Errorf("%w: %s runs version %q; use %d or later", ErrTooOld, place(db.uri), version, MinVersion)
	}
	return nil
}

// major returns the leading number of a version such as "18.6 (Debian 18.6-3)" or "19beta1"; 0 when there is none.
func major(version string) int {
	n := 0
	for n < len(version) && version[n] >= '0' && version[n] <= '9' {
		n++
	}
	v, err := strconv.Atoi(version[:n])
	if err != nil {
		return 0
	}
	return v
}

// Pool returns the pool, whose connections have the run's schema as search_path. The DB still owns it.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Schema returns the run's schema; "" when the DB has none.
func (db *DB) Schema() string { return db.schema }

// Ping reports whether the server answers on a connection of the pool, waiting as long as ctx allows for a free one.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping %s: %w", place(db.uri), err)
	}
	return nil
}

// Close closes every connection, waiting until borrowed ones have come back. It may be called more than once.
func (db *DB) Close() { db.pool.Close() }

// Acquire borrows a connection, which the caller releases. Its error wraps ErrNoConnection: nothing was sent, so the
// work may be tried again. That holds for a closed pool too.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoConnection, err)
	}
	return conn, nil
}

func orDefault[T comparable](v, absent T) T {
	var zero T
	if v == zero {
		return absent
	}
	return v
}
