package experiment

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threadsWaited sums over all threads what /proc/self/task/*/schedstat says: time on a processor, time waiting for one, both
// in nanoseconds, and how often the thread ran (Documentation/scheduler/sched-stats.rst). The file of the process itself is
// that of its first thread alone. A thread that ended takes its numbers along; Go ends hardly any.
func threadsWaited() waited {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil || len(files) == 0 { // a kernel without scheduler statistics has no such file
		return waited{}
	}
	sum := waited{known: true}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread ended meanwhile
		}
		one := parseSchedstat(string(data))
		if !one.known {
			return waited{}
		}
		sum.time += one.time
		sum.runs += one.runs
	}
	return sum
}

// parseSchedstat reads the file of one thread.
func parseSchedstat(line string) waited {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return waited{}
	}
	delay, badDelay := strconv.ParseInt(fields[1], 10, 64)
	runs, badRuns := strconv.ParseInt(fields[2], 10, 64)
	if badDelay != nil || badRuns != nil {
		return waited{}
	}
	return waited{time: time.Duration(delay), runs: runs, known: true}
}
