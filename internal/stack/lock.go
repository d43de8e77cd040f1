//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked is returned by tryLock when somebody else holds the lock.
var errLocked = errors.New("locked")

// tryLock opens path, making it where missing, and locks it. The lock lasts until the file and every copy of it that a
// child inherited are closed, so a crash frees it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(errLocked, f.Close())
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// lockPoll is how often a waiting maker asks again; a make takes a minute.
const lockPoll = 200 * time.Millisecond

// waitLock is tryLock that waits for the holder; waiting is called once when there is one.
func waitLock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for first := true; ; first = false {
		f, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
