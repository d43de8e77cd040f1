//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// proc is one process as /proc tells of it. Number and start time together name it for good.
type proc struct {
	pid, parent int
	state       string // "T" for a stopped one
	began       string // clock ticks since boot
	name        string
	arguments   string
}

// processes lists all that this machine runs; those that end meanwhile are left out.
func processes(t *testing.T) []proc {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var all []proc
	for _, folder := range folders {
		if p, err := readProcess(folder); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// readProcess reads stat, whose second field, the name in parentheses, may hold anything (proc(5)).
func readProcess(folder string) (proc, error) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return proc{}, err
	}
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	arguments, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return proc{}, err
	}
	p := proc{state: fields[0], began: fields[19], name: string(stat[open+1 : end]), arguments: string(arguments)}
	_, err = fmt.Sscan(string(stat[:open])+fields[1], &p.pid, &p.parent)
	return p, err
}

// below returns the processes that a process has started, and those that these have, and so on.
func below(t *testing.T, pid int) []proc {
	t.Helper()
	family := map[int]bool{pid: true}
	all := processes(t)
	slices.SortFunc(all, func(a, b proc) int { // parents begin before their children
		first, _ := strconv.Atoi(a.began)
		second, _ := strconv.Atoi(b.began)
		if first == second {
			return a.pid - b.pid
		}
		return first - second
	})
	var found []proc
	for _, p := range all {
		if family[p.parent] {
			family[p.pid] = true
			found = append(found, p)
		}
	}
	return found
}

// alive returns those of the processes that still run.
func alive(t *testing.T, some []proc) []proc {
	t.Helper()
	now := processes(t)
	var left []proc
	for _, p := range some {
		if slices.ContainsFunc(now, func(q proc) bool { return p.pid == q.pid && p.began == q.began }) {
			left = append(left, p)
		}
	}
	return left
}

// servers checks that a process runs all that a run starts, epmd included, and returns them.
func servers(t *testing.T, pid int) []proc {
	t.Helper()
	found := below(t, pid)
	for _, name := range []string{"beam.smp", "epmd", "postgres", "prometheus"} {
		if !slices.ContainsFunc(found, func(p proc) bool { return p.name == name }) {
			t.Fatalf("no %s among %v", name, found)
		}
	}
	return found
}

// frozen returns how many of a stack's two servers are stopped by a signal.
func frozen(t *testing.T, s shared) int {
	t.Helper()
	database, err := url.Parse(s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range below(t, own.cmd.Process.Pid) {
		server := p.name == "beam.smp" || (p.name == "postgres" && strings.Contains(p.arguments, "port="+database.Port()))
		if server && p.state == "T" {
			n++
		}
	}
	return n
}
