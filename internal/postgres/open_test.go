package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

// withURI returns the test server's address after a change.
func withURI(t *testing.T, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(postgrestest.URI(t))
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// wantRefusal opens by the address and checks that it fails as one sentence with the sentinel, without the password.
func wantRefusal(t *testing.T, uri string, sentinel error, words ...string) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URI: uri, ConnectTimeout: 10 * time.Second})
	if err == nil {
		db.Close()
		t.Fatal("Open took it")
	}
	if !errors.Is(err, sentinel) {
		t.Fatalf("error is %q, want %q", err, sentinel)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not one line without the password", err)
	}
}

func TestOpenFailsAtOnceWhenNobodyListens(t *testing.T) {
	t.Parallel()
	l := listen(t)
	address := l.Addr().String()
	_ = l.Close()
	start := time.Now()
	wantRefusal(t, "postgres://u:hush@"+address+"/d", postgres.ErrUnreachable, address, "refused")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a refusal took %v; it must not wait for the time-out", took)
	}
}

func TestOpenWaitsForASilentServerUpToItsTimeout(t *testing.T) {
	t.Parallel()
	l := listen(t) // the kernel accepts, nobody answers
	_, err := postgres.Open(t.Context(), postgres.Config{
		URI: "postgres://u@" + l.Addr().String() + "/d?sslmode=disable", ConnectTimeout: 50 * time.Millisecond,
	})
	if !errors.Is(err, postgres.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want ErrUnreachable for want of an answer", err)
	}
}

func TestOpenRefusesAUserThatDoesNotExist(t *testing.T) {
	t.Parallel()
	uri := withURI(t, func(u *url.URL) { u.User = url.UserPassword("spillway_nobody", "hush") })
	wantRefusal(t, uri, postgres.ErrLoginRefused, `"spillway_nobody"`, "pg_hba.conf")
}

func TestOpenRefusesADatabaseThatDoesNotExist(t *testing.T) {
	t.Parallel()
	uri := withURI(t, func(u *url.URL) { u.Path = "/spillway_nowhere" })
	wantRefusal(t, uri, postgres.ErrNoDatabase, `"spillway_nowhere"`, "create it")
}

// TestOpenAgainstAServerThatAnswers holds the answers that a healthy server does not give.
func TestOpenAgainstAServerThatAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		answer   pgproto3.BackendMessage
		sentinel error
		words    string
	}{
		{"a version below the oldest is too old", version("13.22 (Debian 13.22-1)"), postgres.ErrTooOld, `version "13.22`},
		{"a version that is no number is too old", version("unknown"), postgres.ErrTooOld, "use 14 or later"},
		{"a wrong password is a refused login", refusal("28P01"), postgres.ErrLoginRefused, "check user, password"},
		{"a client that pg_hba.conf shuts out is a refused login", refusal("28000"), postgres.ErrLoginRefused, "pg_hba.conf"},
		{"no right to connect is a missing right", refusal("42501"), postgres.ErrRightMissing, "GRANT CONNECT"},
		{"no connection left is a full server", refusal("53300"), postgres.ErrFull, "raise max_connections"},
		{"a server that is starting is not reached", refusal("57P03"), postgres.ErrUnreachable, "made up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, fakeServer(t, c.answer), c.sentinel, c.words)
		})
	}
}

func TestOpenTakesTheOldestVersion(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Config{URI: fakeServer(t, version("14.0"))})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

func TestOpenRefusesASchemaNameThatWouldBeCut(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("x", postgres.MaxSchemaBytes+1)
	_, err := postgres.Open(t.Context(), postgres.Config{URI: "postgres://h/d", Schema: name})
	if !errors.Is(err, postgres.ErrBadSchema) {
		t.Errorf("error is %v, want ErrBadSchema", err)
	}
}

func TestOpenSetsTheSession(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgres.Config{
		URI: postgrestest.URI(t), Schema: `Odd "name"`, MaxConns: 3, ApplicationName: "bench",
	})
	var path, name string
	query := `select current_setting('search_path'), current_setting('application_name')`
	if err := db.Pool().QueryRow(t.Context(), query).Scan(&path, &name); err != nil {
		t.Fatal(err)
	}
	if path != `"Odd ""name"""` || name != `Odd "name" bench` {
		t.Errorf("search_path is %s, application_name is %s", path, name)
	}
	if got := db.PoolStats().Max; got != 3 {
		t.Errorf("the pool holds %d, want 3", got)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func version(v string) pgproto3.BackendMessage {
	return &pgproto3.ParameterStatus{Name: "server_version", Value: v}
}

func refusal(code string) pgproto3.BackendMessage {
	return &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "made up"}
}

// fakeServer answers each connection's startup with the message, and with a ready session unless it is an error. It
// returns the address, and ends with the test.
func fakeServer(t *testing.T, answer pgproto3.BackendMessage) string {
	t.Helper()
	l := listen(t)
	serve(t, l, func(conn net.Conn) { greet(conn, answer) })
	return "postgres://u:hush@" + l.Addr().String() + "/d?sslmode=disable"
}

// serve handles one connection after another until the test ends.
func serve(t *testing.T, l net.Listener, handle func(net.Conn)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			handle(conn)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
}

// greet plays one session until the client ends it.
func greet(conn net.Conn, answer pgproto3.BackendMessage) {
	defer func() { _ = conn.Close() }()
	backend := pgproto3.NewBackend(conn, conn)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	if _, refused := answer.(*pgproto3.ErrorResponse); refused {
		backend.Send(answer)
		_ = backend.Flush()
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(answer)
	backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if backend.Flush() != nil {
		return
	}
	_, _ = backend.Receive() // Terminate
}
