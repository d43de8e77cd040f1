package rabbit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// long is a delay that no test waits out.
const long = time.Hour

func TestAGatheringReadWaitsAndThenTakesWhatHasCome(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	g := newGatheringConn(near)
	g.gather(20*time.Millisecond, gatherFrom)
	began := time.Now()
	for range 3 {
		if _, err := far.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
	}
	buffer := make([]byte, 64)
	n, err := g.Read(buffer)
	if took := time.Since(began); err != nil || n != 9 || took < 20*time.Millisecond {
		t.Errorf("read %q after %v (%v), want all three portions after the wait", buffer[:n], took, err)
	}
}

func TestAGatheringReadBlocksWhenNothingHasCome(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	g := newGatheringConn(near)
	g.gather(time.Millisecond, gatherFrom)
	read := make(chan []byte, 1)
	go func() {
		buffer := make([]byte, 64)
		n, _ := g.Read(buffer)
		read <- buffer[:n]
	}()
	time.Sleep(50 * time.Millisecond) // many times the delay: the read is past its look, and waits
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; !bytes.Equal(got, []byte("x")) {
		t.Errorf("read %q: one byte has to end the wait", got)
	}
}

func TestAGatheringReadEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  func(near, far net.Conn)
		want error
	}{
		"closed by the peer":     {func(_, far net.Conn) { _ = far.Close() }, io.EOF},
		"closed by us":           {func(near, _ net.Conn) { _ = near.Close() }, net.ErrClosed},
		"a deadline that passed": {func(near, _ net.Conn) { _ = near.SetReadDeadline(time.Now()) }, os.ErrDeadlineExceeded},
	} {
		near, far := tcpPair(t)
		g := newGatheringConn(near)
		g.gather(time.Millisecond, gatherFrom)
		row.end(near, far)
		if _, err := g.Read(make([]byte, 8)); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
}

func TestSmallWindowsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	g := newGatheringConn(near)
	g.gather(long, gatherFrom-1)
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := g.Read(make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("read %d bytes (%v)", n, err)
	}
}
