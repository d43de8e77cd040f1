package rabbit

import (
	"errors"
	"io"
	"syscall"
)

// wakeFrom sets SO_RCVLOWAT (socket(7)), which epoll obeys since Linux 4.18.
func wakeFrom(raw syscall.RawConn, bytes int) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
	})
	return errors.Join(failed, err)
}

// poll reads what is there and does not wait; 0 and no error is nothing. A deadline that has passed, and a connection that
// was closed, are errors as with Read.
func (g *gatheringConn) poll(p []byte) (n int, err error) {
	failed := g.raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		return true
	})
	switch {
	case failed != nil:
		return 0, failed
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
