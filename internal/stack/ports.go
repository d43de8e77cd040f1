package stack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
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

// freePorts returns n different loopback ports that nothing listens on. They are not held: see portTaken.
func freePorts(n int) ([]int, error) {
	ceiling := ephemeralStart()
	ports := make([]int, 0, n)
	taken := map[int]bool{}
	for range n * portAttempts {
		p := portFloor + rand.IntN(ceiling-portFloor)
		if taken[p] || portTaken(p) {
			continue
		}
		taken[p] = true
		if ports = append(ports, p); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d on 127.0.0.1", n, portFloor, ceiling)
}

// portTaken reports whether somebody else listens on a loopback port.
func portTaken(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	l.Close()
	return false
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
