package inbox

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/postgres"
)

// dispatch starts a lane if a batch is due and one is free; otherwise it sees to it that the oldest message does not
// linger for longer than it should. The caller holds mu.
func (b *Batch) dispatch() {
	if !b.due() {
		b.watch()
		return
	}
	if b.lanes < b.o.Lanes { // else the next lane that is done looks; every call that makes a batch due gets here
		b.lanes++
		go b.lane()
	}
}

// due reports whether a batch should go now. The caller holds mu.
func (b *Batch) due() bool {
	switch n := len(b.waiting); {
	case n == 0:
		return false
	case n >= b.o.Size || b.o.Linger == 0 || b.closed:
		return true
	default:
		return time.Since(b.waiting[0].arrived) >= b.o.Linger
	}
}

// watch sets the timer for a head of the queue that nobody watches yet. A head that leaves early makes the timer fire
// early, which sets it anew. The caller holds mu.
func (b *Batch) watch() {
	if len(b.waiting) == 0 || b.watching {
		return
	}
	b.watching = true
	left := b.o.Linger - time.Since(b.waiting[0].arrived)
	if b.timer == nil {
		b.timer = time.AfterFunc(left, b.lingered)
		return
	}
	b.timer.Reset(left)
}

// lingered runs when the timer fires.
func (b *Batch) lingered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watching = false
	b.dispatch()
}

// withdraw takes a call out of the queue; when it is in a batch already, that is returned.
func (b *Batch) withdraw(one *call) *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one.flight != nil {
		return one.flight
	}
	if i := slices.Index(b.waiting, one); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return nil
}

// shut closes the queue for new calls and sends what waits.
func (b *Batch) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.dispatch()
	b.noteIdle()
}

// noteIdle tells Close when there is nothing left to wait for. The caller holds mu.
func (b *Batch) noteIdle() {
	if !b.closed || b.lanes > 0 { // a lane ends only when nothing waits, once closed
		return
	}
	select {
	case <-b.idle:
	default:
		close(b.idle)
	}
}

// lane sends one batch after the other until none is due. It has the connection before it takes the messages: until then
// they can still be withdrawn, and more may come.
func (b *Batch) lane() {
	for {
		conn, err := postgres.Acquire(b.ctx, b.pool)
		f := b.take()
		if f != nil {
			f.carryOut(conn, err)
		}
		if conn != nil {
			conn.Release() // one that broke is not used again
		}
		if f == nil {
			return
		}
	}
}

// take cuts the next batch from the queue. With nil the lane has ended.
func (b *Batch) take() *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.due() {
		b.lanes--
		b.watch()
		b.noteIdle()
		return nil
	}
	n := min(len(b.waiting), b.o.Size)
	f := newFlight(b.ctx, slices.Clone(b.waiting[:n]))
	b.waiting = slices.Delete(b.waiting, 0, n)
	for _, one := range f.calls {
		one.flight = f
	}
	return f
}

// carryOut runs the batch on its connection; with an error there is none.
func (f *flight) carryOut(conn *pgxpool.Conn, err error) {
	defer f.cancel(nil)
	if err != nil {
		f.answerAll(f.calls, outcome{err: err})
		return
	}
	f.run(conn.Conn())
}
