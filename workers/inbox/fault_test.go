package inbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

func TestATimeoutInTheMiddleRollsBack(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		release := b.lockStock()
		ctx, cancel := context.WithCancelCause(b.Context())
		done := b.start(ctx, claim(1))
		b.await("the update to wait for the row", func() bool { return len(b.blocked()) == 1 })
		cancel(context.DeadlineExceeded)
		if o := <-done; postgres.Classify(o.err) != postgres.Transient || o.result != 0 {
			b.Errorf("apply returned %v, %v; want a transient error", o.result, o.err)
		}
		b.await("the server to give up", func() bool { return len(b.blocked()) == 0 })
		release()
		b.wantState(state{available: 2000})
		b.want(claim(1), event.Applied)
	})
}

func TestABackendKilledInTheMiddleLeavesNothing(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		release := b.lockStock()
		done := b.start(b.Context(), claim(1))
		b.await("the update to wait for the row", func() bool { return len(b.blocked()) == 1 })
		if _, err := b.db.Pool().Exec(b.Context(), `select pg_terminate_backend($1)`, b.blocked()[0]); err != nil {
			b.Fatal(err)
		}
		if o := <-done; postgres.Classify(o.err) != postgres.Transient || o.result != 0 {
			b.Errorf("apply returned %v, %v; want a transient error", o.result, o.err)
		}
		release()
		b.wantState(state{available: 2000})
		b.want(claim(1), event.Applied)
		b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
	})
}

func TestASecondDeliveryWaitsForTheFirstAndTakesOverWhenItFails(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		release := b.lockStock()
		ctx, cancel := context.WithCancel(b.Context())
		first := b.start(ctx, claim(1))
		b.await("the first to wait for the row", func() bool { return len(b.blocked()) == 1 })
		second := b.start(b.Context(), claim(1))
		b.await("the second to wait for the first", func() bool { return len(b.blocked()) == 2 })
		cancel()
		if o := <-first; o.err == nil {
			b.Errorf("the first returned %v", o.result)
		}
		b.await("the first to give up", func() bool { return len(b.blocked()) == 1 })
		release()
		if o := <-second; o.err != nil || o.result != event.Applied {
			b.Errorf("the second returned %v, %v; want applied", o.result, o.err)
		}
		b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
	})
}

func TestAFailureAfterTheClaimLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		if _, err := b.db.Pool().Exec(b.Context(), `alter table effect_log add constraint spoilt check (seq <> 1)`); err != nil {
			b.Fatal(err)
		}
		released := func() bool { return b.db.PoolStats().Acquired == 0 } // a lane gives it back after its answer
		opened := b.db.PoolStats().Opened
		result, err := b.inbox.Apply(b.Context(), claim(1))
		if postgres.Classify(err) != postgres.Permanent || errors.Is(err, postgres.ErrCommitUnknown) || result != 0 {
			b.Errorf("apply returned %v, %v; want the check's violation", result, err)
		}
		b.await("the connection to come back", released)
		b.wantState(state{available: 2000})
		b.want(claim(2), event.Applied)
		b.await("the connection to come back", released)
		if now := b.db.PoolStats().Opened; now != opened {
			b.Errorf("the pool opened %d connections: a failure cost one", now-opened)
		}
	})
}

// trips is how many round trips a strategy takes, the last of which carries the commit.
var trips = map[string]int{"transaction": 3, "statement": 1, "batch": 1}

func TestALostAnswerToTheCommitIsUnknownAndTheNextAttemptADuplicate(t *testing.T) {
	t.Parallel()
	for name, build := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t, plenty)
			cut := startCutter(t)
			through := postgrestest.Open(t, postgres.Config{URI: cut.uri, Schema: db.Schema(), MaxConns: 1})
			b := &bench{T: t, db: db, inbox: build(t, through.Pool())}
			b.want(claim(1), event.Applied) // prepares the statements, so that the round trips can be counted
			cut.after.Store(int64(trips[name]))
			result, err := b.inbox.Apply(t.Context(), claim(2))
			if !errors.Is(err, postgres.ErrCommitUnknown) || postgres.Classify(err) != postgres.Transient || result != 0 {
				t.Errorf("apply returned %v, %v; want ErrCommitUnknown", result, err)
			}
			b.want(claim(2), event.Duplicate)
			b.wantState(state{claims: 2, reservedRows: 2, available: 1996, reserved: 4})
		})
	}
}

func TestAnAnswerLostBeforeTheCommitChangesNothing(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, plenty)
	cut := startCutter(t)
	through := postgrestest.Open(t, postgres.Config{URI: cut.uri, Schema: db.Schema(), MaxConns: 1})
	b := &bench{T: t, db: db, inbox: strategies["transaction"](t, through.Pool())}
	b.want(claim(1), event.Applied)
	cut.after.Store(2)
	_, err := b.inbox.Apply(t.Context(), claim(2))
	if postgres.Classify(err) != postgres.Transient || errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("error is %v, want transient, with a known outcome", err)
	}
	b.want(claim(2), event.Applied)
	b.wantState(state{claims: 2, reservedRows: 2, available: 1996, reserved: 4})
}

// cutter is a proxy to the test server that swallows the answer to one round trip and then cuts the connection.
type cutter struct {
	uri string
	// after counts down at the end of each answer of the server; the answer at which it comes to 0 is swallowed.
	// Below 1 it is not armed.
	after atomic.Int64
}

func startCutter(t *testing.T) *cutter {
	t.Helper()
	u, err := url.Parse(postgrestest.URI(t))
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("sslmode", "disable") // the proxy must read the answers
	u.Host, u.RawQuery = l.Addr().String(), query.Encode()
	c := &cutter{uri: u.String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(client, server)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return c
}

// serve passes one connection on until either side ends it, or it is cut.
func (c *cutter) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	for {
		answer, err := readAnswer(server)
		if err != nil || c.after.Load() > 0 && c.after.Add(-1) == 0 {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// readAnswer reads the server's messages up to one that ends an answer: ReadyForQuery, or a request for the password.
func readAnswer(r io.Reader) (answer []byte, err error) {
	for {
		header := make([]byte, 5) // type, and length without the type
		if _, err := io.ReadFull(r, header); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		answer = append(append(answer, header...), body...)
		if header[0] == 'Z' || header[0] == 'R' {
			return answer, nil
		}
	}
}
