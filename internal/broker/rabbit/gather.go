package rabbit

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// gatherFrom is the window, or prefetch, from which on reads are gathered. Below it the peer may have to wait for us with
// nothing left to send: a window of one would carry a message per wait, and no more.
const gatherFrom = 100

// GatherDelay is the wait that suits a closed load. A window of 100 could still carry 100,000 messages a second; and the
// runtime's timers round shorter waits up to it anyway (Go 1.26, epoll).
const GatherDelay = time.Millisecond

// gatheringConn is a TCP connection that can be read in larger portions: a Read waits a little before it looks, so that more
// has come by then. A busy broker sends in portions of a few messages, each of which otherwise wakes a thread, runs some
// goroutines and lets the process fall asleep again; on two cores these changes took 44 % of the CPU time of a closed
// load (perf; see docs/adr/0012). The price is up to the delay in the age of what is read, so nothing that measures latency on a
// schedule asks for it.
//
// While a Read waits, the kernel is told not to wake anybody for less than a full buffer. That is the half of it that saves:
// a timer alone would leave the process to be woken by each segment as before.
type gatheringConn struct {
	net.Conn
	raw   syscall.RawConn // nil where the connection cannot be read in this way
	delay atomic.Int64    // nanoseconds; 0 reads at once
	timer *time.Timer     // of the reading goroutine
	quiet bool            // the kernel has been told to be quiet; of the reading goroutine
}

func newGatheringConn(c net.Conn) *gatheringConn {
	g := &gatheringConn{Conn: c}
	if tcp, ok := c.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			g.raw = raw
		}
	}
	return g
}

// gather sets the wait before each Read, for a connection that may have window messages under way. It may be called at any
// time, and is without effect below gatherFrom.
func (g *gatheringConn) gather(delay time.Duration, window int) {
	if g.raw != nil && window >= gatherFrom {
		g.delay.Store(int64(delay))
	}
}

// Read implements net.Conn. When nothing has come during the wait it blocks until something does, as any Read: the next one
// waits again.
func (g *gatheringConn) Read(p []byte) (int, error) {
	delay := time.Duration(g.delay.Load())
	if delay == 0 {
		return g.Conn.Read(p)
	}
	g.setQuiet(true)
	g.wait(delay)
	if n, err := g.poll(p); n > 0 || err != nil {
		return n, err
	}
	g.setQuiet(false)
	return g.Conn.Read(p)
}

func (g *gatheringConn) wait(d time.Duration) {
	if g.timer == nil {
		g.timer = time.NewTimer(d)
	} else {
		g.timer.Reset(d)
	}
	<-g.timer.C
}

// setQuiet tells the kernel how much must have come before it wakes a reader: a full buffer, or anything.
func (g *gatheringConn) setQuiet(quiet bool) {
	if quiet == g.quiet {
		return
	}
	bytes := 1
	if quiet {
		bytes = readSize
	}
	if wakeFrom(g.raw, bytes) == nil { // a kernel that does not know of it costs what it did before
		g.quiet = quiet
	}
}
