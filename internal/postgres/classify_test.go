package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"spillway/internal/postgres"
)

func code(c string) error { return &pgconn.PgError{Severity: "ERROR", Code: c, Message: "made up"} }

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want postgres.Class
	}{
		"no error has no class":                           {nil, 0},
		"a deadlock may not happen again":                 {code("40P01"), postgres.Transient},
		"a serialisation failure may not happen again":    {code("40001"), postgres.Transient},
		"a connection exception passes":                   {code("08006"), postgres.Transient},
		"a refused connection passes":                     {code("08001"), postgres.Transient},
		"an admin shutdown is followed by a start":        {code("57P01"), postgres.Transient},
		"a crash shutdown is followed by recovery":        {code("57P02"), postgres.Transient},
		"a server that is starting up will be there":      {code("57P03"), postgres.Transient},
		"an idle session that was ended can be opened":    {code("57P05"), postgres.Transient},
		"a dropped database does not come back":           {code("57P04"), postgres.Unknown},
		"too many connections become fewer":               {code("53300"), postgres.Transient},
		"a full disk is emptied":                          {code("53100"), postgres.Transient},
		"memory that ran out is freed":                    {code("53200"), postgres.Transient},
		"a lock time-out may get the lock":                {code("55P03"), postgres.Transient},
		"a cancelled query may finish":                    {code("57014"), postgres.Transient},
		"a transaction idle for too long can be redone":   {code("25P03"), postgres.Transient},
		"a transaction that took too long can be redone":  {code("25P04"), postgres.Transient},
		"a read-only server follows a fail-over":          {code("25006"), postgres.Transient},
		"another transaction state is a defect":           {code("25P02"), postgres.Unknown},
		"a unique violation stays one":                    {code("23505"), postgres.Permanent},
		"a check violation stays one":                     {code("23514"), postgres.Permanent},
		"a null where none may be stays one":              {code("23502"), postgres.Permanent},
		"a number out of range stays so":                  {code("22003"), postgres.Permanent},
		"text that is no UUID stays so":                   {code("22P02"), postgres.Permanent},
		"bytes that are no UTF-8 stay so":                 {code("22021"), postgres.Permanent},
		"a syntax error is a defect":                      {code("42601"), postgres.Unknown},
		"a missing table is a defect":                     {code("42P01"), postgres.Unknown},
		"a missing right is a defect while a run goes on": {code("42501"), postgres.Unknown},
		"an internal error is a defect":                   {code("XX000"), postgres.Unknown},
		"a raised exception is a defect":                  {code("P0001"), postgres.Unknown},
		"a code cut short is a defect":                    {code("4"), postgres.Unknown},
		"a refused password is a defect while a run goes": {code("28P01"), postgres.Unknown},
		"a handler out of time may be faster":             {context.DeadlineExceeded, postgres.Transient},
		"a cancelled handler is done again":               {context.Canceled, postgres.Transient},
		"a time-out on the socket passes":                 {os.ErrDeadlineExceeded, postgres.Transient},
		"a network error passes":                          {&net.OpError{Op: "dial", Err: errors.New("refused")}, postgres.Transient},
		"a name that was not resolved may be":             {&net.DNSError{Name: "db"}, postgres.Transient},
		"an end of the stream passes":                     {io.EOF, postgres.Transient},
		"an end in the middle of an answer passes":        {io.ErrUnexpectedEOF, postgres.Transient},
		"a closed socket passes":                          {net.ErrClosed, postgres.Transient},
		"a connection closed by the driver passes":        {pgconn.ErrConnClosed, postgres.Transient},
		"a pool without a connection passes":              {postgres.ErrNoConnection, postgres.Transient},
		"an unknown COMMIT is tried again":                {postgres.ErrCommitUnknown, postgres.Transient},
		"input that the tables cannot hold stays so":      {postgres.ErrInvalidInput, postgres.Permanent},
		"no rows is a defect":                             {pgx.ErrNoRows, postgres.Unknown},
		"a COMMIT answered by ROLLBACK is a defect":       {pgx.ErrTxCommitRollback, postgres.Unknown},
		"any other error is a defect":                     {errors.New("made up"), postgres.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := postgres.Classify(c.err); got != c.want {
				t.Errorf("Classify(%v) = %v, want %v", c.err, got, c.want)
			}
			if c.err == nil {
				return
			}
			if got := postgres.Classify(fmt.Errorf("apply: %w", c.err)); got != c.want {
				t.Errorf("wrapped: Classify(%v) = %v, want %v", c.err, got, c.want)
			}
		})
	}
}

func TestTheServersCodeDecidesBeforeTheWrapping(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("%w: %w", postgres.ErrNoConnection, code("28P01"))
	if got := postgres.Classify(err); got != postgres.Unknown {
		t.Errorf("Classify(%v) = %v, want unknown", err, got)
	}
}

func TestClassesHaveNames(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(postgres.Class(0), postgres.Transient, postgres.Permanent, postgres.Unknown)
	if want := "none transient permanent unknown"; got != want {
		t.Errorf("names are %q, want %q", got, want)
	}
}

func TestCommitError(t *testing.T) {
	t.Parallel()
	fatal := &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"}
	german := &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "40001"}
	for name, c := range map[string]struct {
		err     error
		unknown bool
	}{
		"no error is none":                                 {nil, false},
		"an ERROR means that nothing was committed":        {code("40001"), false},
		"an ERROR in another language is one all the same": {german, false},
		"a ROLLBACK as the answer is an answer":            {pgx.ErrTxCommitRollback, false},
		"without a connection nothing was sent":            {postgres.ErrNoConnection, false},
		"a FATAL may have come after the commit":           {fatal, true},
		"a broken connection hides the answer":             {io.ErrUnexpectedEOF, true},
		"a time-out hides the answer":                      {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := postgres.CommitError(c.err)
			if !errors.Is(got, c.err) {
				t.Errorf("CommitError(%v) = %v lost its cause", c.err, got)
			}
			if unknown := errors.Is(got, postgres.ErrCommitUnknown); unknown != c.unknown {
				t.Errorf("CommitError(%v) unknown = %t, want %t", c.err, unknown, c.unknown)
			}
		})
	}
}
