package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"

	"spillway/internal/experiment"
	"spillway/internal/metrics"
	"spillway/internal/stack"
)

// What a run with servers of its own wants of the machine. Less is noted, and refused only where a run could not work.
const (
	wantedCPUs     = 2
	wantedMemory   = 2 << 30 // RabbitMQ, PostgreSQL, Prometheus and the load take about 1 GB
	wantedDisk     = 1 << 30 // for the servers' data and the run's files
	descriptorBase = 128     // files, sockets of the runtime, management and metrics connections
)

// host looks at this machine.
func (d *diagnosis) host(ctx context.Context) {
	cpus := runtime.NumCPU()
	d.add(found("machine", "processors", cpus >= wantedCPUs, fmt.Sprint(cpus), "latencies on one processor measure its scheduler").optional(false))
	d.add(hostMemory())
	d.add(freeDisk("results", "."))
	if cache, err := stack.CacheDir(); err == nil && len(d.flags.missing(d.profile)) > 0 {
		d.add(freeDisk("servers' data", existing(cache)))
	}
	d.add(d.openFiles(), metricsPort(ctx))
}

func hostMemory() check {
	bytes := experiment.MemoryBytes()
	if bytes == 0 {
		return check{"machine", "memory", checkNote, "unknown on this system", ""}
	}
	c := found("machine", "memory", bytes >= wantedMemory, gibibytes(uint64(bytes)), "give servers and load 2 GiB or more")
	return c.optional(false)
}

func gibibytes(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// existing returns the folder, or the nearest one above it that exists.
func existing(dir string) string {
	if _, err := os.Stat(dir); err == nil || dir == "" {
		return dir
	}
	return os.TempDir()
}

func freeDisk(name, dir string) check {
	name = "disk for " + name
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return check{"machine", name, checkNote, err.Error(), ""}
	}
	free := fs.Bavail * uint64(fs.Bsize)
	return found("machine", name, free >= wantedDisk, gibibytes(free)+" free", "free 1 GiB or more")
}

// openFiles compares the limit with what the profile opens: a connection for each publisher, worker and database session.
func (d *diagnosis) openFiles() check {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return check{"machine", "open files", checkNote, err.Error(), ""}
	}
	need := uint64(descriptorBase + d.profile.Load.Publishers + d.profile.Workers.Count + experiment.DatabaseConnections(d.profile))
	return found("machine", "open files", limit.Cur >= need, fmt.Sprintf("limit %d, needed about %d", limit.Cur, need), "raise it with ulimit -n")
}

// metricsPort says where /metrics would be served. A taken port is no fault: the next free one is used.
func metricsPort(ctx context.Context) check {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", metrics.DefaultAddr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return check{"machine", "metrics port", checkOK, metrics.DefaultAddr + " is taken; the next free port is used", ""}
	case err != nil:
		return found("machine", "metrics port", false, err.Error(), "give another with --metrics-addr")
	}
	_ = l.Close() // it was only a try
	return check{"machine", "metrics port", checkOK, metrics.DefaultAddr + " is free", ""}
}
