package experiment

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"spillway/internal/broker/rabbit"
	"spillway/internal/result"
)

// environment says what the run ran on. What cannot be found out is left unknown; it decides nothing.
func (r *run) environment() result.Environment {
	ctx, cancel := context.WithTimeout(context.Background(), statisticsTimeout)
	defer cancel()
	version, _ := r.db.Version(ctx)   // unknown while the database is away
	settings, _ := r.db.Settings(ctx) // the same
	return result.Environment{
		Host:      r.host(),
		Broker:    result.Broker{Product: r.product, Version: r.brokerAt, Nodes: r.nodes(ctx)},
		Postgres:  result.Postgres{Version: version, Settings: settings},
		Go:        runtime.Version(),
		Colocated: r.colocated(),
	}
}

// nodes returns the size of the cluster; nil when nobody can say.
func (r *run) nodes(ctx context.Context) *int64 {
	if r.management == nil {
		return nil
	}
	nodes, err := r.management.Nodes(ctx)
	if err != nil {
		return nil
	}
	n := int64(len(nodes))
	return &n
}

func (r *run) colocated() bool {
	return !slices.ContainsFunc(r.admin.Hosts(), func(host string) bool { return !rabbit.IsLoopback(host) })
}

func (r *run) host() result.Host {
	return result.Host{
		OS: runtime.GOOS + "/" + runtime.GOARCH, Kernel: firstLine("/proc/sys/kernel/osrelease"), CPUs: runtime.NumCPU(),
		MemoryBytes: MemoryBytes(), StealRatio: readCPU().stolenSince(r.steal), FsyncSeconds: fsyncSeconds(r.o.Dir),
	}
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// MemoryBytes returns the machine's memory from /proc/meminfo, 0 where there is none.
func MemoryBytes() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib * 1024
		}
	}
	return 0
}

// cpuTimes is the first line of /proc/stat: time of all processors in ticks, and the part that the hypervisor took.
type cpuTimes struct {
	total, steal uint64
	known        bool
}

// stealField is the position of "steal" among the numbers of that line (proc(5)).
const stealField = 7

func readCPU() cpuTimes {
	fields := strings.Fields(firstLine("/proc/stat"))
	if len(fields) <= stealField+1 || fields[0] != "cpu" {
		return cpuTimes{}
	}
	t := cpuTimes{known: true}
	for i, field := range fields[1 : stealField+2] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return cpuTimes{}
		}
		t.total += n
		if i == stealField {
			t.steal = n
		}
	}
	return t
}

// stolenSince returns the share of processor time that the hypervisor took between two readings; nil when unknown.
func (t cpuTimes) stolenSince(before cpuTimes) *float64 {
	if !t.known || !before.known || t.total <= before.total {
		return nil
	}
	return result.Number(float64(t.steal-before.steal) / float64(t.total-before.total))
}

const (
	fsyncTries = 9    // odd, so that the median is one of them
	fsyncBytes = 4096 // one page
)

// fsyncSeconds returns the median time of a small write and fsync in a folder; nil when it cannot be taken.
func fsyncSeconds(dir string) *float64 {
	file, err := os.CreateTemp(dir, ".fsync-")
	if err != nil {
		return nil
	}
	defer os.Remove(file.Name())
	defer file.Close()
	page := make([]byte, fsyncBytes)
	times := make([]time.Duration, 0, fsyncTries)
	for range fsyncTries {
		start := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil {
			return nil
		}
		if err := file.Sync(); err != nil {
			return nil
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return result.Seconds(times[len(times)/2])
}

// files returns the files of the run's folder, sorted, relative to it.
func (r *run) files() []string {
	var names []string
	_ = filepath.WalkDir(r.o.Dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			if name, err := filepath.Rel(r.o.Dir, path); err == nil {
				names = append(names, name)
			}
		}
		return nil
	})
	return names
}
