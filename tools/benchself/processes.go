package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portOf returns the port of an AMQP address.
func portOf(at *url.URL) int {
	if port, err := strconv.Atoi(at.Port()); err == nil {
		return port
	}
	if at.Scheme == "amqps" {
		return 5671
	}
	return 5672
}

// listener returns the process of this machine that listens on a TCP port; 0 when it cannot be found, as on systems
// without /proc, for servers elsewhere, and for processes of other users.
func listener(port int) int {
	sockets := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, inode := range listening(string(data), port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // its only error is a bad pattern
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && sockets[target] {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			return pid
		}
	}
	return 0
}

// listening returns the inodes of the sockets that listen on a port, from the text of /proc/net/tcp (proc_pid_net(5)).
func listening(text string, port int) (inodes []string) {
	const localColumn, stateColumn, inodeColumn, stateListen = 1, 3, 9, "0A"
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > inodeColumn && f[stateColumn] == stateListen && strings.HasSuffix(f[localColumn], suffix) {
			inodes = append(inodes, f[inodeColumn])
		}
	}
	return inodes
}

// ticksPerSecond is the unit of CPU time in /proc; Linux has had 100 on every architecture that Go supports.
const ticksPerSecond = 100

// times are of one process, in ticks: its own, and that of children that ended and were waited for.
type times struct {
	parent int
	own    int64
	ended  int64
}

// treesCPU returns the CPU seconds of processes and of all below each; 0 for the process 0.
func treesCPU(roots ...int) []float64 {
	all := map[int]times{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // its only error is a bad pattern
	for _, file := range files {
		data, err := os.ReadFile(file) // a process that has just ended is in its parent's sum
		if err != nil {
			continue
		}
		if pid, t, ok := parseStat(string(data)); ok {
			all[pid] = t
		}
	}
	out := make([]float64, len(roots))
	for i, root := range roots {
		if root != 0 {
			out[i] = float64(sumTree(all, root)) / ticksPerSecond
		}
	}
	return out
}

func sumTree(all map[int]times, root int) int64 {
	sum := all[root].own + all[root].ended
	for pid, t := range all {
		if t.parent == root && pid != root {
			sum += sumTree(all, pid)
		}
	}
	return sum
}

// parseStat reads /proc/PID/stat (proc_pid_stat(5)). The name stands in brackets and may hold anything.
func parseStat(text string) (pid int, t times, ok bool) {
	open, closing := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || closing < open {
		return 0, t, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text[:open]))
	f := strings.Fields(text[closing+1:])
	const parentField, userField, endedSystemField = 1, 11, 14 // after the name: state is 0
	if err != nil || len(f) <= endedSystemField {
		return 0, t, false
	}
	var ticks [4]int64 // user, system, and both of ended children
	for i := range ticks {
		if ticks[i], err = strconv.ParseInt(f[userField+i], 10, 64); err != nil {
			return 0, t, false
		}
	}
	t.parent, err = strconv.Atoi(f[parentField])
	t.own, t.ended = ticks[0]+ticks[1], ticks[2]+ticks[3]
	return pid, t, err == nil
}
