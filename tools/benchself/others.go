package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// quiet is for how long the machine is looked at before each pair.
const quiet = 500 * time.Millisecond

// others returns the share of the machine's CPU time that is used while neither side runs: by an idle broker, and by what
// else goes on there. It spoils a comparison more than anything, so the page says it. 0 where the system does not tell.
func others(ctx context.Context) float64 {
	idle, all := processors()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0
	}
	idleAfter, allAfter := processors()
	if allAfter == all {
		return 0
	}
	return 1 - float64(idleAfter-idle)/float64(allAfter-all)
}

// processors returns the ticks of all CPUs since boot: idle, and of any kind (proc_stat(5), the line "cpu").
func processors() (idle, all int64) {
	const idleColumn, waitColumn, lastColumn = 3, 4, 7 // idle and iowait; guest time after steal is in user time already
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	first, _, _ := strings.Cut(string(data), "\n")
	for i, text := range strings.Fields(strings.TrimPrefix(first, "cpu")) {
		ticks, err := strconv.ParseInt(text, 10, 64)
		if err != nil || i > lastColumn {
			break
		}
		all += ticks
		if i == idleColumn || i == waitColumn {
			idle += ticks
		}
	}
	return idle, all
}
