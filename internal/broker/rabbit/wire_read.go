package rabbit

import (
	"time"

	"spillway/internal/broker/rabbit/frame"
)

const (
	// readSize is what one Read of the socket may take: room for some eighty messages of 512 bytes, so that a busy
	// connection is read in few system calls.
	readSize = 64 << 10
	// idleSteps is into how many parts the idle bound is cut: the deadline of the socket is moved on once in each, rather
	// than with every Read.
	idleSteps = 8
)

// hot is the one channel of a wire whose answers and deliveries this package reads by itself. Both methods are called from
// the goroutine that reads the wire, and must not block.
type hot interface {
	// take is given each frame of the channel, and reports whether it was one of those; the client library gets the others.
	take(f *frame.Frame) (taken bool, err error)
	// read ends a row of frames that one Read of the socket gave; at is when that was.
	read(at time.Time)
}

// inbound is the reading half of a wire. Only the goroutine that reads owns it.
type inbound struct {
	buffer  []byte // read from the socket
	unread  []byte // of buffer: not looked at yet
	through []byte // for the library, which takes it in pieces
	lastSet time.Time
	raw     bool // no frames: a broker of another protocol, say. The library will know what to make of it
}

// Read gives the library what is meant for it. It reads from the socket, and hands the hot channel its own, until there is
// something.
func (w *wire) Read(p []byte) (int, error) {
	in := &w.in
	for len(in.through) == 0 {
		if err := w.fill(); err != nil {
			w.fail(err)
			return 0, err
		}
		if err := w.sort(); err != nil {
			w.fail(err)
			return 0, err
		}
	}
	n := copy(p, in.through)
	in.through = in.through[n:]
	return n, nil
}

// fill reads once from the socket, behind what is left of an incomplete frame.
func (w *wire) fill() error {
	in := &w.in
	if err := w.moveDeadline(); err != nil {
		return err
	}
	in.makeRoom()
	room := in.buffer[len(in.unread):cap(in.buffer)]
	n, err := w.Conn.Read(room)
	in.unread = in.buffer[:len(in.unread)+n]
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// makeRoom moves what is left to the front of the buffer, and grows that when one frame fills it.
func (in *inbound) makeRoom() {
	if len(in.unread) == cap(in.buffer) {
		in.buffer = make([]byte, max(readSize, 2*cap(in.buffer)))
	}
	in.buffer = in.buffer[:cap(in.buffer)]
	copy(in.buffer, in.unread)
	in.unread = in.buffer[:len(in.unread)]
}

// moveDeadline gives the broker its time to send something. The library's own deadlines do not count: its heartbeat loop
// sees only the frames that are given to it, and does not run at all while it is stuck sending into a blocked connection.
func (w *wire) moveDeadline() error {
	idle := time.Duration(w.idle.Load())
	if idle == 0 {
		return nil
	}
	now := time.Now()
	if now.Sub(w.in.lastSet) < idle/idleSteps {
		return nil
	}
	w.in.lastSet = now
	return w.Conn.SetReadDeadline(now.Add(idle))
}

// sort deals out what is whole of the frames read.
func (w *wire) sort() error {
	in := &w.in
	in.through = in.through[:0]
	channel, at := w.hot.Load(), time.Now()
	for !in.raw {
		f, whole, err := frame.Split(in.unread)
		if err != nil && channel == nil {
			in.raw = true
			break
		}
		if err != nil {
			return err
		}
		if !whole {
			break
		}
		if err := w.deal(channel, &f); err != nil {
			return err
		}
		in.unread = in.unread[f.Size:]
	}
	if in.raw {
		in.through = append(in.through, in.unread...)
		in.unread = in.unread[:0]
	}
	if channel != nil {
		channel.read(at)
	}
	return nil
}

func (w *wire) deal(channel *hotChannel, f *frame.Frame) error {
	if channel != nil && f.Channel == channel.number {
		if taken, err := channel.take(f); taken || err != nil {
			return err
		}
	}
	whole := w.in.unread[:f.Size]
	w.in.through = append(w.in.through, whole...)
	return nil
}

// hotChannel is a hot with the number of its channel.
type hotChannel struct {
	hot
	number uint16
}

// handOver makes the channel that the library opened last the hot one. Nothing that take wants may be under way yet.
func (w *wire) handOver(h hot) (number uint16) {
	number = uint16(w.opened.Load())
	w.hot.Store(&hotChannel{h, number})
	return number
}

// noteOpening remembers the number of a channel that the library opens. Its writes hold whole frames while they are as small
// as those that open a channel.
func (w *wire) noteOpening(p []byte) {
	if f, whole, err := frame.Split(p); err == nil && whole && f.OpensChannel() {
		w.opened.Store(uint32(f.Channel))
	}
}
