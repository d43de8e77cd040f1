package rabbit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
)

// tcpPair returns two ends of a real TCP connection, since a pipe has no buffers to fill.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if near, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

func TestTheWireKeepsEveryByteInOrder(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	w := newWire(near, near)
	var want bytes.Buffer
	go func() {
		for i := range 20000 {
			chunk := bytes.Repeat([]byte{byte(i)}, 1+i%97)
			want.Write(chunk)
			if _, err := w.Write(chunk); err != nil {
				t.Error(err)
			}
			clear(chunk) // the wire must have taken a copy
		}
		_ = w.Close()
	}()
	got, err := io.ReadAll(far)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes came, %d were written, or they differ", len(got), want.Len())
	}
}

// countingConn counts the writes that reach the socket.
type countingConn struct {
	net.Conn
	writes atomic.Int64
	gate   chan struct{}
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	<-c.gate
	return c.Conn.Write(p)
}

func TestWritesAreGatheredWhileAFlushIsUnderWay(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	slow := &countingConn{Conn: near, gate: make(chan struct{})}
	w := newWire(near, slow)
	write := func(s string) {
		if _, err := w.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	eventually(t, "the first flush begins", func() bool { return slow.writes.Load() == 1 })
	for range 100 {
		write("b")
	}
	close(slow.gate)
	buffer := make([]byte, 101)
	if _, err := io.ReadFull(far, buffer); err != nil {
		t.Fatal(err)
	}
	if n := slow.writes.Load(); n != 2 {
		t.Errorf("101 writes made %d system calls, want 2", n)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// blockedWriter writes to a wire whose far end does not read until a Write blocks; the channel gives the error that
// ended it.
func blockedWriter(t *testing.T, w *wire) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	var written atomic.Int64
	go func() {
		for {
			if _, err := w.Write(make([]byte, 8<<10)); err != nil {
				ended <- err
				return
			}
			written.Add(1)
		}
	}()
	last := int64(-1)
	eventually(t, "the socket is full", func() bool {
		time.Sleep(100 * time.Millisecond)
		now := written.Load()
		stuck := now == last && now > 0
		last = now
		return stuck
	})
	return ended
}

func TestAbortReleasesABlockedWriteAtOnce(t *testing.T) {
	t.Parallel()
	near, _ := tcpPair(t)
	w := newWire(near, near)
	ended := blockedWriter(t, w)
	started := time.Now()
	w.abort()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the write ended with %v", err)
	}
	<-w.flushed
	if took := time.Since(started); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestCloseIsBoundedWhenTheSocketIsFull(t *testing.T) {
	t.Parallel()
	near, _ := tcpPair(t)
	w := newWire(near, near)
	ended := blockedWriter(t, w)
	started := time.Now()
	_ = w.Close() // the socket is closed already by the failed flush
	<-ended
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAFailedReadReleasesABlockedWrite(t *testing.T) {
	t.Parallel()
	near, _ := tcpPair(t)
	w := newWire(near, near)
	ended := blockedWriter(t, w)
	w.setIdle(50 * time.Millisecond)
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the read ended with %v, want the idle bound", err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the write ended with %v, want the reason of the read", err)
	}
}

// heartbeat is a frame that passes through to the library.
var heartbeat = []byte{8, 0, 0, 0, 0, 0, 0, 0xCE}

func TestEveryReadMovesTheIdleBoundOn(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	w := newWire(near, near)
	defer w.abort()
	const idle = 400 * time.Millisecond
	w.setIdle(idle)
	started := time.Now()
	for range 6 { // together longer than the bound, each one shorter
		time.Sleep(idle / 4)
		if _, err := far.Write(heartbeat); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Read(make([]byte, len(heartbeat))); err != nil {
			t.Fatalf("after %v: %v", time.Since(started), err)
		}
	}
}

// flowRecord records blocked and unblocked.
type flowRecord struct{ blocked, unblocked []string }

func (f *flowRecord) Blocked(blocked bool, reason string, at time.Time) {
	if at.IsZero() {
		reason = "no time"
	}
	if blocked {
		f.blocked = append(f.blocked, reason)
	} else {
		f.unblocked = append(f.unblocked, reason)
	}
}

var _ broker.Flow = (*flowRecord)(nil)

func TestTheEndOfABlockedConnectionIsReportedAsUnblocked(t *testing.T) {
	t.Parallel()
	blocks := make(chan amqp.Blocking, 3)
	blocks <- amqp.Blocking{Active: true, Reason: "low on memory"}
	blocks <- amqp.Blocking{Active: false}
	blocks <- amqp.Blocking{Active: true, Reason: "low on disk"}
	close(blocks)
	var got flowRecord
	watchFlow(blocks, &got)
	if len(got.blocked) != 2 || got.blocked[0] != "low on memory" || len(got.unblocked) != 2 || got.unblocked[1] != "the connection ended" {
		t.Errorf("got %+v", got)
	}
}
