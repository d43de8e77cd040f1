package rabbit

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// lowWater returns from how many bytes on the kernel wakes a reader of the connection.
func lowWater(t *testing.T, g *gatheringConn) (bytes int) {
	t.Helper()
	var err error
	failed := g.raw.Control(func(fd uintptr) {
		bytes, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT)
	})
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestTheKernelIsQuietWhileAReadGathers: a timer alone would save little, since the process would be woken all the same.
func TestTheKernelIsQuietWhileAReadGathers(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	g := newGatheringConn(near)
	if n := lowWater(t, g); n != 1 {
		t.Fatalf("a connection that does not gather wakes from %d bytes on", n)
	}
	g.gather(time.Millisecond, gatherFrom)
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if n := lowWater(t, g); n <= 1 {
		t.Errorf("a connection that gathers wakes from %d bytes on", n)
	}
}
