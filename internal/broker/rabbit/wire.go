package rabbit

import (
	"net"
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

// wire is the net.Conn under an AMQP connection. The client library makes one Write a frame group; wire gathers them
// while a flush is under way, so that a busy publisher makes few large system calls instead of many small ones.
//
// It also does three things that the library cannot: abort closes the socket at once, whatever else is blocked on it; a
// failed Read fails the writing side too, since a writer that is stuck in a full socket holds locks that the library's
// shutdown needs; and the read deadline is moved on by every Read, because the library's own heartbeat loop stops doing
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

	born   time.Time     // carries the monotonic reading for lastRead
	readAt atomic.Int64  // nanoseconds from born to the end of the last Read that gave bytes
	reads  chan struct{} // see Reads; capacity 1, so that several batches make one signal
}

// newWire wraps a connection and starts the flusher, which ends with Close or abort.
func newWire(socket, conn net.Conn) *wire {
	w := &wire{
		Conn:    conn,
		socket:  socket,
		pending: make([]byte, 0, gatherLimit),
		flushed: make(chan struct{}),
		born:    time.Now(),
		reads:   make(chan struct{}, 1),
	}
	w.data.L, w.space.L = &w.mu, &w.mu
	go w.flush()
	return w
}

// Write takes a copy of p. It waits while more than gatherLimit bytes are waiting for the socket. An error of the
// socket comes back on the Write after the one that met it, and closes the wire.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.closing && len(w.pending) >= gatherLimit {
		w.space.Wait()
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case w.closing:
		return 0, net.ErrClosed
	}
	w.pending = append(w.pending, p...)
	w.data.Signal()
	return len(p), nil
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
	}
	if w.err != nil {
		return nil
	}
	batch := w.pending
	w.pending = spare
	w.space.Broadcast()
	return batch
}

// Read reads from the broker. The library calls it again when it has handled every whole frame of the bytes that the
// last call gave, so the start of a Read is the moment at which all answers so far are settled in the library.
func (w *wire) Read(p []byte) (int, error) {
	select {
	case w.reads <- struct{}{}:
	default:
	}
	if idle := w.idle.Load(); idle > 0 {
		if err := w.Conn.SetReadDeadline(time.Now().Add(time.Duration(idle))); err != nil {
			w.fail(err)
			return 0, err
		}
	}
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.readAt.Store(int64(time.Since(w.born)))
	}
	if err != nil {
		w.fail(err)
	}
	return n, err
}

// Reads gives a signal after each batch of answers that the library has handled. Several batches may make one signal.
func (w *wire) Reads() <-chan struct{} { return w.reads }

// lastRead returns when bytes were last read from the broker. It is monotonic. Loaded after an answer was seen, it is
// never earlier than the arrival of that answer.
func (w *wire) lastRead() time.Time { return w.born.Add(time.Duration(w.readAt.Load())) }

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
