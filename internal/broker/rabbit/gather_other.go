//go:build !linux

package rabbit

import (
	"errors"
	"syscall"
)

// wakeFrom is not tried here.
func wakeFrom(syscall.RawConn, int) error { return errors.ErrUnsupported }

// poll gives nothing: whoever reads waits for it.
func (g *gatheringConn) poll([]byte) (int, error) { return 0, nil }
