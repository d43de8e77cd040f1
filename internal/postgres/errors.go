package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors of the environment. Their text starts the sentence that a user reads.
var (
	// ErrBadURI is returned for an address that cannot be parsed, or that names a file that cannot be read.
	ErrBadURI = errors.New("the PostgreSQL address cannot be used")
	// ErrUnreachable is returned when no connection could be made: refused, time-out, name not resolved, TLS failure,
	// or a server that is starting up or shutting down.
	ErrUnreachable = errors.New("PostgreSQL cannot be reached")
	// ErrLoginRefused is returned when the server refused the user, the password or the client's address.
	ErrLoginRefused = errors.New("PostgreSQL refused the login")
	// ErrRightMissing is returned when the user lacks a right that the run needs.
	ErrRightMissing = errors.New("the PostgreSQL user lacks a right")
	// ErrNoDatabase is returned when the server has no database of that name.
	ErrNoDatabase = errors.New("the PostgreSQL database does not exist")
	// ErrFull is returned when the server has no connection left.
	ErrFull = errors.New("PostgreSQL has no connection left")
	// ErrTooOld is returned for a server below MinVersion.
	ErrTooOld = errors.New("PostgreSQL is too old")
	// ErrSchemaTaken is returned when the schema holds tables that are not spillway's, or messages of another run.
	ErrSchemaTaken = errors.New("the PostgreSQL schema is taken")
)

// Errors of use.
var (
	// ErrNoSchema is returned by what needs the run's schema on a DB that was opened without one.
	ErrNoSchema = errors.New("the database was opened without a schema")
	// ErrBadSchema is returned for a schema name that PostgreSQL would cut.
	ErrBadSchema = errors.New("the schema name is too long")
	// ErrInvalidInput marks a value that the tables cannot hold, found before anything was sent. It is permanent.
	ErrInvalidInput = errors.New("the value cannot be stored")
	// ErrNoConnection is returned when the pool gave no connection: nothing was sent. It is transient.
	ErrNoConnection = errors.New("no database connection")
	// ErrCommitUnknown is returned when a COMMIT was sent and its answer was lost: the transaction may or may not
	// have taken place. It is transient: the next attempt finds the claim or makes it.
	ErrCommitUnknown = errors.New("the outcome of the COMMIT is unknown")
)

// openError makes the sentence for a connection that could not be had: what, where, why, and what to do.
func openError(uri string, err error) error {
	user, database := login(uri)
	cause := rootCause(err)
	switch code := sqlState(err); {
	case code == "28P01" || code == "28000":
		return fmt.Errorf("%w: %s, user %q: %w; check user, password and pg_hba.conf", ErrLoginRefused, place(uri), user, cause)
	case code == "3D000":
		return fmt.Errorf("%w: %s has no database %q: %w; create it or name another", ErrNoDatabase, place(uri), database, cause)
	case code == "42501":
		return fmt.Errorf("%w: %s, user %q: %w; GRANT CONNECT ON DATABASE to it", ErrRightMissing, place(uri), user, cause)
	case strings.HasPrefix(code, "53"):
		return fmt.Errorf("%w: %s: %w; close other clients or raise max_connections", ErrFull, place(uri), cause)
	default:
		return fmt.Errorf("%w: %s: %w; check that it runs there and accepts connections", ErrUnreachable, place(uri), cause)
	}
}

// badURI makes the sentence for an address that cannot be parsed. The driver masks passwords only as well as it can, so
// its text is not repeated; only the name of a file that could not be read is.
func badURI(uri string, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("%w: %s: %w", ErrBadURI, Redact(uri), file)
	}
	return fmt.Errorf("%w: %s; check its form, port, sslmode and the files that it names", ErrBadURI, Redact(uri))
}

// sqlState returns the five-character code of the server's error; "" when the server sent none.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// rootCause returns the innermost error, whose text has no address and no line break: the driver's own text repeats
// both for each address that it tried. Of several joined errors the last counts, which is the last address tried.
func rootCause(err error) error {
	var pg *pgconn.PgError
	for err != nil && !errors.As(err, &pg) {
		next := unwrapLast(err)
		if next == nil {
			return err
		}
		err = next
	}
	return pg
}

func unwrapLast(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		if all := many.Unwrap(); len(all) > 0 {
			return all[len(all)-1]
		}
		return nil
	}
	return errors.Unwrap(err)
}
