package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// freezePoll is how often a family of processes is looked at until it stands still.
	freezePoll = 5 * time.Millisecond
	// freezeBound is how long that may take: on a busy machine a thread stops when it is next given a CPU.
	freezeBound = 5 * time.Second
)

var errStillMoving = errors.New("some of its processes still run after a stop")

// freeze stops every process below pid and returns when all of their threads stand still. Processes that are started
// meanwhile are stopped with the next look.
func freeze(pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), freezeBound)
	defer cancel()
	tick := time.NewTicker(freezePoll)
	defer tick.Stop()
	for {
		still := true
		for _, child := range descendants(pid) {
			_ = syscall.Kill(child, syscall.SIGSTOP) // one that has just ended needs no signal
			still = still && stopped(child)
		}
		if still {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errStillMoving
		}
	}
}

// stopped reports whether no thread of a process can run: each is stopped, or has ended (proc(5), stat).
func stopped(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
		if found && !bytes.ContainsAny(rest[:1], "TtZX") {
			return false
		}
	}
	return true
}
