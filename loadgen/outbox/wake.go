package outbox

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/broker"
)

// channel returns the name under which wake-ups for a table travel. Names of channels are the database's, not a schema's,
// and have at most 63 bytes.
func channel(schema, table string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(schema + "." + table))
	return fmt.Sprintf("spillway_%016x", h.Sum64())
}

// notifyEvery is the shortest time between two wake-ups: far below what a person would call lag, and at most 200 a second
// whatever the rate.
const notifyEvery = 5 * time.Millisecond

// Notifier tells relays, wherever they run, that rows were written. NOTIFY takes a lock on the whole database when its
// transaction commits, so it stays out of the writers' transactions: they leave a hint here, and one connection of the
// Notifier's own sends at most one NOTIFY every few milliseconds. It is no data path. A hint that is lost, with the
// connection or the process, costs the relays' polling interval.
type Notifier struct {
	pool    *pgxpool.Pool
	channel string
	hints   chan struct{} // one token
	sent    atomic.Int64
}

// NewNotifier returns a notifier for a table of a schema. Run sends.
func NewNotifier(pool *pgxpool.Pool, schema, table string) *Notifier {
	return &Notifier{pool: pool, channel: channel(schema, table), hints: make(chan struct{}, 1)}
}

// Hint says that rows were committed. It never blocks and may be called from any goroutine.
func (n *Notifier) Hint() {
	select {
	case n.hints <- struct{}{}:
	default: // a token is there already, and the wake-up still to come is after this commit
	}
}

// Sent returns how many wake-ups were sent.
func (n *Notifier) Sent() int64 { return n.sent.Load() }

// Run sends wake-ups until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	return keepConnected(ctx, n.pool, func(conn *pgx.Conn) error {
		// A NOTIFY has nothing to flush that is worth waiting for.
		if _, err := conn.Exec(ctx, `set synchronous_commit = off`); err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-n.hints:
			}
			if _, err := conn.Exec(ctx, `select pg_notify($1, '')`, n.channel); err != nil {
				return err
			}
			n.sent.Add(1)
			if !broker.Wait(ctx, notifyEvery) {
				return nil
			}
		}
	})
}

// Listener hears wake-ups. It takes one connection from the pool for as long as it runs.
type Listener struct {
	pool    *pgxpool.Pool
	channel string
	wake    chan struct{} // one token
}

// NewListener returns a listener for a table of a schema. Run listens.
func NewListener(pool *pgxpool.Pool, schema, table string) *Listener {
	return &Listener{pool: pool, channel: channel(schema, table), wake: make(chan struct{}, 1)}
}

// Wake gives a token after each wake-up; several may make one. All relays of a process may wait on it: the one that takes
// a full batch wakes its other lanes itself.
func (l *Listener) Wake() <-chan struct{} { return l.wake }

// Run listens until ctx ends, again after a lost connection. What was sent meanwhile is made up for by a token.
func (l *Listener) Run(ctx context.Context) error {
	return keepConnected(ctx, l.pool, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `listen `+pgx.Identifier{l.channel}.Sanitize()); err != nil {
			return err
		}
		for {
			select {
			case l.wake <- struct{}{}:
			default: // a token is there already
			}
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return err
			}
		}
	})
}

// farewell bounds the closing of a connection.
const farewell = time.Second

// keepConnected runs a session on a connection of its own, again with backoff when it fails, until ctx ends. The session's
// settings end with the connection, which never goes back to the pool.
func keepConnected(ctx context.Context, pool *pgxpool.Pool, session func(*pgx.Conn) error) error {
	for tries := 0; ctx.Err() == nil; tries++ {
		borrowed, err := pool.Acquire(ctx)
		if err == nil {
			began := time.Now()
			conn := borrowed.Hijack()
			err = session(conn)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			_ = conn.Close(closing) // broken, or of no more use
			cancel()
			if time.Since(began) > databaseBackoff.Max {
				tries = 0 // it was well for a while
			}
		}
		if err == nil || !broker.Wait(ctx, databaseBackoff.Delay(tries, rand.Float64())) {
			return nil
		}
	}
	return nil
}
