package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Class says what a later attempt at the same work may expect. The zero value is no class: a forgotten one never reads
// as harmless.
type Class uint8

const (
	_ Class = iota
	// Transient: a later attempt may succeed; the cause lies in the server's state or between it and us.
	Transient
	// Permanent: every attempt with the same input fails alike.
	Permanent
	// Unknown: no known class. It is a new defect until somebody has looked at it.
	Unknown
)

// String returns the class's name in lower case.
func (c Class) String() string { return [...]string{"none", "transient", "permanent", "unknown"}[c] }

// Classify returns the class of an error from the database or the driver, and 0 for nil. The server's own code decides
// before the driver's wrapping. Syntax errors and missing tables (class 42) are Unknown: a deployment may be mending
// them, and a person must look.
func Classify(err error) Class {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrInvalidInput):
		return Permanent
	case errors.Is(err, ErrCommitUnknown):
		return Transient
	}
	if code := sqlState(err); code != "" {
		return classifyCode(code)
	}
	if errors.Is(err, ErrNoConnection) || lostConnection(err) || outOfTime(err) {
		return Transient
	}
	return Unknown
}

// classifyCode goes by the server's code, and where that is not listed by its class, the first two characters
// (PostgreSQL 18, appendix A).
func classifyCode(code string) Class {
	if transientCode(code) {
		return Transient
	}
	switch code[:min(2, len(code))] {
	case "08", // connection exception
		"40", // transaction rollback: serialisation failure, deadlock
		"53": // insufficient resources: too many connections, disk full, out of memory
		return Transient
	case "22", // data exception
		"23": // integrity constraint violation
		return Permanent
	default:
		return Unknown
	}
}

// transientCode lists codes that are transient although their class as a whole is not.
func transientCode(code string) bool {
	switch code {
	case "55P03", // lock_not_available
		"57014", // query_canceled: statement_timeout, or our own cancel after a time-out
		"57P01", // admin_shutdown, pg_terminate_backend
		"57P02", // crash_shutdown: another backend crashed
		"57P03", // cannot_connect_now: starting up or shutting down
		"57P05", // idle_session_timeout
		"25P03", // idle_in_transaction_session_timeout
		"25P04", // transaction_timeout, from version 17
		"25006": // read_only_sql_transaction: a fail-over left this connection on the old primary
		return true
	default:
		return false
	}
}

// outOfTime reports a deadline or a cancelled context, the handler's own included.
func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || pgconn.Timeout(err)
}

// lostConnection reports a connection that could not be made, was closed, or broke.
func lostConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// CommitError returns the error of a step that carried a COMMIT. A plain ERROR from the server, ROLLBACK as its answer, or
// an error from before anything was sent means that nothing was committed, and comes back as it is. Anything else (a
// broken connection, a FATAL during shutdown, a time-out) leaves the outcome open and is wrapped in ErrCommitUnknown.
func CommitError(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case pgconn.SafeToRetry(err) || errors.Is(err, ErrNoConnection) || errors.Is(err, pgx.ErrTxCommitRollback):
		return err
	case errors.As(err, &pg) && severity(pg) == "ERROR":
		return err
	default:
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
}

// severity returns the severity in English whatever the server's language.
func severity(pg *pgconn.PgError) string {
	if pg.SeverityUnlocalized != "" {
		return pg.SeverityUnlocalized
	}
	return strings.ToUpper(pg.Severity)
}
