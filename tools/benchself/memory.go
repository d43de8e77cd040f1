package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// memory finds what ten million messages take of memory.
type memory struct{}

func (memory) name() string  { return "memory" }
func (memory) title() string { return "Memory of ten million messages" }

const million = 1_000_000

// What is asked of the run.
const (
	memoryMillions = 10  // messages, unless told otherwise
	memoryGrowth   = 0.1 // of the level after the first million: above that it is not flat
	// memoryWorkers keep up with the publisher: a backlog has its own cost, 32 bytes a message, which is not what is asked.
	memoryWorkers = 2
	// memoryEvery is how often the process is looked at.
	memoryEvery = time.Second
	// memoryRate is what the time is estimated by; the run goes on until the messages are there.
	memoryRate = 14_000
)

func (memory) targets() []target {
	const command = "make bench-memory"
	return []target{
		{Measure: "resident memory of a run of 10 million messages, the most", Unit: "MB", AtMost: true, Bound: new(400.0), ByValue: true, Least: memoryMillions, Apart: true, Command: command},
		{Measure: "resident memory after 10 million messages, against after the first million", Unit: "x", AtMost: true, Bound: new(1 + memoryGrowth), Digits: 2, ByValue: true, Least: memoryMillions, Apart: true, Command: command},
	}
}

func (memory) steps(o options) (int, time.Duration) {
	return o.millions, million / memoryRate * time.Second
}

// resident is the memory of a run after so many messages were offered.
type resident struct {
	messages int64
	bytes    int64
}

func (m memory) run(ctx context.Context, e *env) (s section, err error) {
	l := e.o.load
	l.duration = 24 * time.Hour // it is stopped when there are enough
	x := closed(l, "-y", strconv.Itoa(memoryWorkers))
	var seen []resident
	x.beside = func(ctx context.Context, p *os.Process, dir string) { seen = e.followMemory(ctx, p, dir) }
	r, err := e.spillway(ctx, x)
	if err != nil {
		return s, err
	}
	if r.Messages.Offered < int64(e.o.millions)*million {
		return s, fmt.Errorf("%w: it ended after %d messages", errSpoilt, r.Messages.Offered)
	}
	return m.section(levelsOf(seen, e.o.millions), r.Process.MaxRSSBytes, r.Messages.Offered)
}

// followMemory looks at a process until ctx ends, and tells it to stop offering when it has offered enough.
func (e *env) followMemory(ctx context.Context, p *os.Process, dir string) (seen []resident) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	counting := &seriesCounter{path: filepath.Join(dir, "series.csv")}
	stopped, told := false, int64(0)
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-ticker.C:
		}
		if stopped {
			continue
		}
		now, n := memoryOf(p.Pid), counting.offered()
		if now > 0 {
			seen = append(seen, resident{n, now})
		}
		for ; n/million > told; told++ {
			e.step("memory: %d million messages, %d MB", told+1, now/megabyte)
		}
		if n >= int64(e.o.millions)*million {
			stopped = p.Signal(os.Interrupt) == nil
		}
	}
}

const megabyte = 1_000_000

// memoryOf returns the resident memory of a process in bytes (VmRSS of proc_pid_status(5)); 0 where the system does not tell.
func memoryOf(pid int) int64 { return kibibytes(field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")) }

func kibibytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
	if err != nil {
		return 0
	}
	return n * 1024
}

// seriesCounter adds up the messages offered by the series of a run, as it grows.
type seriesCounter struct {
	path  string
	read  int64 // bytes that are counted
	total int64
	at    int // column of the messages offered; 0 is not known yet
}

// offered returns the sum so far. A line that is not complete yet is read the next time.
func (s *seriesCounter) offered() int64 {
	file, err := os.Open(s.path)
	if err != nil {
		return s.total
	}
	defer file.Close()
	if _, err := file.Seek(s.read, io.SeekStart); err != nil {
		return s.total
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return s.total
	}
	complete := data[:strings.LastIndexByte(string(data), '\n')+1]
	lines, err := csv.NewReader(strings.NewReader(string(complete))).ReadAll()
	if err != nil {
		return s.total
	}
	s.read += int64(len(complete))
	for _, line := range lines {
		s.count(line)
	}
	return s.total
}

func (s *seriesCounter) count(line []string) {
	if s.at == 0 {
		s.at = slices.Index(line, "offered")
		return
	}
	if n, err := strconv.ParseInt(line[s.at], 10, 64); err == nil {
		s.total += n
	}
}

var errNoMemory = errors.New("this system does not tell what memory a process has, or not enough of it was seen")

// section makes the rows from the levels of each million, at least two.
func (m memory) section(levels []float64, most, messages int64) (s section, err error) {
	millions := len(levels)
	if millions < 2 || most == 0 || slices.Contains(levels, 0) {
		return s, errNoMemory
	}
	first, last := levels[1], levels[millions-1]
	t := m.targets()
	s.Rows = []row{
		t[0].of(exactly(float64(most)/megabyte), millions, fmt.Sprintf("%d MB", most/megabyte), ""),
		t[1].of(exactly(last/first), millions, fmt.Sprintf("%.0f MB", last/megabyte), fmt.Sprintf("%.0f MB", first/megabyte)),
	}
	s.Text = fmt.Sprintf(textMemory, memoryWorkers, thousands(float64(messages)))
	s.Notes = []string{fmt.Sprintf("From the second million to the last the level moved by %+.1f MB for each million messages.",
		(last-first)/megabyte/float64(max(1, millions-2)))}
	s.Runs = table{Columns: []string{"million", "resident, MB (median)"}}
	for i, level := range levels {
		s.Runs.add(strconv.Itoa(i+1), fmt.Sprintf("%.0f", level/megabyte))
	}
	return s, nil
}

const textMemory = `The closed load of the comparison with the plain loop, but with %d workers, which keep up with it: %s messages in one
run, the account at its end included. Resident memory is what the kernel counts (VmRSS), looked at once a second; the most is
its maximum over the whole run. The level of a million is the median while that million was offered; flat means that the level
of the last is at most 1.1 times that of the second.`

// levelsOf returns the median memory, in bytes, while each million was offered; 0 for one that was not seen.
func levelsOf(seen []resident, millions int) []float64 {
	levels := make([]float64, millions)
	for i := range levels {
		var within []float64
		for _, r := range seen {
			if r.messages/million == int64(i) {
				within = append(within, float64(r.bytes))
			}
		}
		if len(within) > 0 {
			levels[i] = median(within)
		}
	}
	return levels
}
