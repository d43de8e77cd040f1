//go:build unix

package stack

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReservedPorts(t *testing.T) {
	t.Parallel()
	r, err := reservePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.release)
	seen := map[int]bool{}
	for _, p := range r.ports {
		if seen[p] || p < portFloor || p >= ephemeralStart() {
			t.Errorf("port %d: seen before %v, want one in [%d, %d)", p, seen[p], portFloor, ephemeralStart())
		}
		seen[p] = true
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.ports[0]))
	for round := range 2 { // as a server that is stopped and started
		if _, err := bindQuietly(r.ports[0]); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("round %d: a second reservation gives %v, want %v", round, err, unix.EADDRINUSE)
		}
		if _, err := net.Dial("tcp4", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("round %d: a connection with no server gives %v, want %v", round, err, syscall.ECONNREFUSED)
		}
		server, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatalf("round %d: a server on its reserved port: %v", round, err)
		}
		if !portTaken(r.ports[0]) {
			t.Errorf("round %d: the server's port counts as free", round)
		}
		server.Close()
	}
}

func TestTheEndOfALogIsShort(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("early\n", 50) + strings.Repeat("x", 1000) + "\nlast\n"
	if got, want := lastLines([]byte(text), 2), strings.Repeat("x", tailWidth)+" ...\nlast"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
