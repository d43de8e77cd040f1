//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ports are drawn from here when the kernel does not say where its ephemeral range begins. The upper bound is the first
// ephemeral port of Linux, the lower one stays clear of what people give to servers by hand.
const (
	portFloor   = 20000
	portCeiling = 32768
)

// portAttempts bounds the draw for one port; on a machine with half of the range taken, 100 misses in a row are out of
// the question.
const portAttempts = 100

// reservation holds loopback ports for servers that come and go. Each has a socket that is bound but never listens: the
// kernel refuses connections to it, lets a server with SO_REUSEADDR (all of ours set it) listen beside it, and refuses
// the port to other reservations, also while the server is stopped.
type reservation struct {
	ports   []int
	sockets []int
}

// reservePorts reserves n different loopback ports.
func reservePorts(n int) (*reservation, error) {
	ceiling := ephemeralStart()
	r := &reservation{}
	for range n * portAttempts {
		port := portFloor + rand.IntN(ceiling-portFloor)
		socket, err := bindQuietly(port)
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			r.release()
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		r.ports, r.sockets = append(r.ports, port), append(r.sockets, socket)
		if len(r.ports) == n {
			return r, nil
		}
	}
	r.release()
	return nil, fmt.Errorf("no %d free ports between %d and %d on 127.0.0.1", n, portFloor, ceiling)
}

// bindQuietly binds a socket to a port on which nobody has one, not even a quiet one, and only then allows others beside
// it: in this order no two reservations can get the same port.
func bindQuietly(port int) (int, error) {
	socket, err := privateSocket()
	if err != nil {
		return 0, err
	}
	err = unix.Bind(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		return 0, errors.Join(err, unix.Close(socket))
	}
	return socket, nil
}

// privateSocket makes a TCP socket that no child inherits; the lock keeps a fork from coming between the two calls.
func privateSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	return socket, err
}

// release gives the ports back. It may be called on nil.
func (r *reservation) release() {
	if r == nil {
		return
	}
	for _, socket := range r.sockets {
		_ = unix.Close(socket) // it was never connected, so nothing can be lost
	}
	r.sockets = nil
}

// portTaken reports whether somebody listens on a loopback port; a reservation does not.
func portTaken(port int) bool {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		err = l.Close()
	}
	return errors.Is(err, unix.EADDRINUSE)
}

// ephemeralStart returns the first port that the kernel gives to outgoing connections, or portCeiling where it does not
// say or leaves us too little room below.
func ephemeralStart() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return portCeiling
	}
	var first, last int
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil || first < portFloor+1000 {
		return portCeiling
	}
	return first
}
