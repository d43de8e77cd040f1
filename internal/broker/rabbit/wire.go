package rabbit

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// gatherLimit is how many bytes wait for the socket before Write holds its caller back. It is about what a window of
	// 64 messages of 1 KiB needs: enough that a flush is never short of bytes, little enough that a publish which
	// returned is on its way.
	gatherLimit = 64 << 10
	// closeFlush bounds how long Close tries to get the last bytes (a close-ok, mostly) out of a socket that is full.
	closeFlush = 250 * time.Millisecond
)

// wire is the net.Conn under an AMQP connection, below the client library. Of the frames of one channel, the hot one, it
// makes a shorter way: publishes and acks are written here, answers and deliveries are read here, and the library, which
// would spend some forty allocations on each, never sees them. Everything else passes through: login, channels,
// declarations, heartbeats, errors, closing (docs/adr/0012).
//
// Writes of both are gathered while a flush is under way, so that a busy publisher makes few large system calls instead of
// many small ones. They are whole frames each: the library flushes after every frame, and all that it sends beside a hot
// channel fits into its buffer of 4 KiB.
//
// It also does three things that the library cannot: abort closes the socket at once, whatever else is blocked on it; a
// failed Read fails the writing side too, since a writer that is stuck in a full socket holds locks that the library's
// shutdown needs; and the read deadline is moved on by what is read, because the library's own heartbeat loop stops doing
// so when it is stuck sending into a blocked connection: a memory alarm then ended the connection after one and a half
// heartbeats, although the broker was alive and kept sending (ran, amqp091-go 1.16.0, RabbitMQ 3.10.8).
type wire struct {
	net.Conn          // plain or TLS
	socket   net.Conn // the TCP connection below it

	mu      sync.Mutex
	data    sync.Cond // signalled when the flusher has something to do
	space   sync.Cond // signalled when pending was taken, or the wire failed
	pending []byte    // gathered since the flusher last took it; guarded by mu
	closing bool      // guarded by mu
	err     error     // the first failure; guarded by mu

	flushed chan struct{} // closed when the flusher has ended
	idle    atomic.Int64  // nanoseconds without a byte from the broker after which a Read fails; 0 is for ever

	opened atomic.Uint32 // number of the channel that was opened last
	hot    atomic.Pointer[hotChannel]
	in     inbound
}

// newWire wraps a connection and starts the flusher, which ends with Close or abort.
func newWire(socket, conn net.Conn) *wire {
	w := &wire{
		Conn:    conn,
		socket:  socket,
		pending: make([]byte, 0, gatherLimit),
		flushed: make(chan struct{}),
	}
	w.data.L, w.space.L = &w.mu, &w.mu
	go w.flush()
	return w
}

// Write takes a copy of p. It waits while more than gatherLimit bytes are waiting for the socket. An error of the
// socket comes back on the Write after the one that met it, and closes the wire.
func (w *wire) Write(p []byte) (int, error) {
	if w.hot.Load() == nil {
		w.noteOpening(p)
	}
	if err := w.send(context.Background(), p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send is Write with a bound: when ctx ends while it waits, the wire is aborted.
func (w *wire) send(ctx context.Context, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) >= gatherLimit {
		w.await(ctx)
	}
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return net.ErrClosed
	}
	if len(w.pending) == 0 {
		w.data.Signal()
	}
	w.pending = append(w.pending, p...)
	return nil
}

// await waits for room; mu is held. Watching the context costs something, so it is done by those who wait only.
func (w *wire) await(ctx context.Context) {
	defer context.AfterFunc(ctx, w.abort)()
	for w.err == nil && !w.closing && len(w.pending) >= gatherLimit {
		w.space.Wait()
	}
}

// flush writes what was gathered, until the wire is closed and empty, or fails.
func (w *wire) flush() {
	defer close(w.flushed)
	spare := make([]byte, 0, gatherLimit)
	for {
		batch := w.take(spare)
		if len(batch) == 0 {
			return
		}
		if _, err := w.Conn.Write(batch); err != nil {
			w.fail(err)
			return
		}
		if spare = batch[:0]; cap(spare) > 4*gatherLimit { // do not keep the room of one huge body for ever
			spare = make([]byte, 0, gatherLimit)
		}
	}
}

// take waits for bytes and swaps the buffers. It returns nothing when there is nothing more to write.
func (w *wire) take(spare []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) == 0 && !w.closing && w.err == nil {
		w.data.Wait()
		w.mu.Unlock()
		runtime.Gosched() // who has begun to write mostly writes more: a turn for it makes one system call of several
		w.mu.Lock()
	}
	if w.err != nil {
		return nil
	}
	batch := w.pending
	w.pending = spare
	w.space.Broadcast()
	return batch
}

// setIdle sets how long the broker may be silent.
func (w *wire) setIdle(d time.Duration) { w.idle.Store(int64(d)) }

// fail records the first error, wakes whoever waits, and closes the socket.
func (w *wire) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.data.Broadcast()
	w.space.Broadcast()
	w.mu.Unlock()
	_ = w.socket.Close() // the first error is the one that says why
}

// failure returns the first error; nil while the wire is whole.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// abort closes the socket at once. It does not block, may be called more than once and from any goroutine.
func (w *wire) abort() { w.fail(net.ErrClosed) }

// Close flushes what was gathered, bounded by closeFlush, and closes the connection.
func (w *wire) Close() error {
	w.mu.Lock()
	w.closing = true
	w.data.Broadcast()
	w.space.Broadcast()
	w.mu.Unlock()
	_ = w.socket.SetWriteDeadline(time.Now().Add(closeFlush)) // fails only on a closed socket, which needs no bound
	<-w.flushed
	return w.socket.Close()
}
