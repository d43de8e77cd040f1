package outbox

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/broker"
	"spillway/internal/event"
)

// lane is one claim after the other: claim, publish, await the answers, mark. One goroutine runs it.
type lane struct {
	relay   *Relay
	rows    []row // as long as a batch may be; a claim fills its head
	claimed time.Duration
	open    sync.WaitGroup // publishes that are not settled
	verdict verdicts
	owed    bool // verdict could not be written with its claim
}

func newLane(r *Relay) *lane { return &lane{relay: r, rows: make([]row, r.cfg.Batch)} }

// run works until the session's epoch ends or the relay is to.
func (l *lane) run(ctx context.Context, s *session) {
	idle := time.NewTimer(0)
	defer idle.Stop()
	for failures := 0; l.goOn(ctx, s); {
		n, err := l.turn(ctx, s)
		switch {
		case err != nil:
			failures++
			l.rest(ctx, s, idle, databaseBackoff.Delay(failures-1, rand.Float64()), nil)
		case n == 0:
			failures = 0
			l.rest(ctx, s, idle, l.relay.cfg.Poll, l.relay.cfg.Wake)
		default:
			failures = 0
		}
	}
	if l.owed && !l.relay.killed.Load() {
		l.payLast(ctx)
	}
}

// databaseBackoff spaces the tries at a database that does not answer.
var databaseBackoff = broker.Backoff{Min: 20 * time.Millisecond, Max: time.Second}

func (l *lane) goOn(ctx context.Context, s *session) bool {
	select {
	case <-s.epoch.Done():
		return false
	default:
		return !l.relay.killed.Load() && !l.relay.over(ctx)
	}
}

// rest waits for a wake-up, or as long as said.
func (l *lane) rest(ctx context.Context, s *session, idle *time.Timer, wait time.Duration, wake <-chan struct{}) {
	idle.Reset(wait)
	select {
	case <-idle.C:
	case <-wake:
	case <-l.relay.busy:
	case <-s.epoch.Done():
	case <-l.relay.stopped.Done():
	case <-ctx.Done():
	}
}

// turn does one batch and returns how many rows it had. An error is the database's, or the pool's.
func (l *lane) turn(ctx context.Context, s *session) (n int, err error) {
	conn, err := l.relay.cfg.Pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release() // one that is closed or inside a transaction is not used again
	if l.owed {
		if err := l.write(ctx, conn.Conn()); err != nil {
			return 0, err
		}
	}
	if n, err = l.claim(ctx, conn.Conn()); err != nil || n == 0 {
		return n, err
	}
	return n, l.batch(ctx, s, conn, l.rows[:n])
}

// claim takes rows from the floor, or from the first.
func (l *lane) claim(ctx context.Context, conn *pgx.Conn) (n int, err error) {
	r, began := l.relay, time.Now()
	from, sweep := r.floor.claim(began)
	n, now, err := claim(ctx, conn, &r.cfg.Source, from, l.rows)
	if err != nil {
		return 0, err
	}
	l.claimed = r.cfg.Base.Now()
	r.floor.saw(sweep, l.rows[:n], now)
	if sweep {
		r.floor.swept(time.Now(), time.Since(began))
	}
	if n > 0 {
		r.cfg.Book.claim(n)
		r.cfg.Observer.Claimed(r.cfg.Source.table, n, l.claimed)
	}
	if n == len(l.rows) {
		select {
		case r.busy <- struct{}{}:
		default: // a token is there already
		}
	}
	return n, nil
}

// batch publishes the rows of a claim, awaits the answers and writes the verdicts.
func (l *lane) batch(ctx context.Context, s *session, conn *pgxpool.Conn, rows []row) error {
	if l.relay.kill(AfterClaim) {
		return l.die(s, conn)
	}
	guard := time.AfterFunc(l.relay.cfg.Hold, s.epoch.Abort)
	l.publish(ctx, s, rows)
	if l.relay.kill(AfterPublish) {
		guard.Stop()
		return l.die(s, conn)
	}
	l.open.Wait() // bounded: an epoch that ends settles all, and the guard ends it
	guard.Stop()
	if l.relay.kill(AfterConfirm) {
		return l.die(s, conn)
	}
	l.verdict.judge(rows, rand.Float64)
	l.owed = true
	err := l.write(ctx, conn.Conn())
	if err != nil {
		l.relay.cfg.Book.lostClaims.Add(1)
		return err
	}
	if l.relay.kill(AfterMark) {
		return l.die(s, conn)
	}
	return nil
}

// die cuts the connections, as the end of a process would. The broker's goes first: the rows are free for other relays as
// soon as the database's is gone, and until the driver has let go of them they count as in flight here.
func (l *lane) die(s *session, conn *pgxpool.Conn) error {
	s.epoch.Abort()
	l.open.Wait()
	_ = conn.Hijack().PgConn().Conn().Close() // the pool forgets it, the server hears no farewell
	return ErrKilled
}

// publish writes the rows through the window. It ends early with the epoch; what was not written then stays as it was.
func (l *lane) publish(ctx context.Context, s *session, rows []row) {
	for i := range rows {
		select {
		case token := <-l.relay.free:
			l.send(s, i, token)
		case <-s.epoch.Done():
			return
		case <-ctx.Done():
			return
		}
		if l.relay.killed.Load() {
			return
		}
	}
}

// send publishes one row. The event precedes the write: once written, the confirm may overtake it.
func (l *lane) send(s *session, i, token int) {
	r, w := l.relay, &l.rows[i]
	r.slots[token] = ref{l, i}
	w.sent = r.cfg.Base.Now()
	w.message.Headers.SentAt = r.cfg.Base.Micros(w.sent)
	again, duplicate := r.cfg.Book.publish(w.id)
	w.duplicate = duplicate
	if r.cfg.Source.orders {
		scheduled, warmup := r.schedule(w)
		r.cfg.Load.Sent(event.Sent{Seq: w.seq, Scheduled: scheduled, At: w.sent, Republish: again, Relayed: true, Warmup: warmup})
	}
	l.open.Add(1)
	if err := s.publish(uint64(token), &w.message); err != nil { // it may have arrived: unknown
		r.settled([]broker.Settlement{{Token: uint64(token), Outcome: broker.Unknown, At: time.Now(), Reason: err.Error()}})
	}
}

// marksTimeout bounds the writing of verdicts, also after a hard stop: what the broker confirmed is known for a moment
// longer than the run lasts, and each mark that is still written is one duplicate less.
const marksTimeout = 5 * time.Second

// write writes the verdicts. They are owed until that has worked: when the claim's transaction is gone they are written in
// one of their own, before anything else is claimed.
func (l *lane) write(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), marksTimeout)
	defer cancel()
	if err := l.verdict.settle(ctx, conn, &l.relay.cfg.Source); err != nil {
		return err
	}
	l.owed = false
	l.relay.cfg.Book.mark(l.verdict.confirmed)
	return nil
}

// payLast writes what is still owed when the lane ends, if the database answers within the bound.
func (l *lane) payLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), marksTimeout)
	defer cancel()
	conn, err := l.relay.cfg.Pool.Acquire(ctx)
	if err != nil {
		return // the rows stay unsent and are published again
	}
	defer conn.Release()
	_ = l.write(ctx, conn.Conn()) // the same
}
