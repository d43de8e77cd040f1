package latency_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"spillway/internal/latency"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 250e6, time.UTC)

// written runs a set with two samples in the first second, none in the second, one in a last half, and returns the
// folder of its logs.
func written(t *testing.T) (*latency.Set, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "latency")
	set := latency.NewSet()
	logs, err := set.OpenLogs(dir, began)
	if err != nil {
		t.Fatal(err)
	}
	set.Confirm.Record(time.Millisecond)
	set.Confirm.Record(3 * time.Millisecond)
	err = logs.Rotate(time.Second)
	err = errors.Join(err, logs.Rotate(2*time.Second))
	set.Confirm.Record(40 * time.Millisecond)
	set.Confirm.Record(-1)
	if err := errors.Join(err, logs.Close(2500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return set, dir
}

func TestEveryRecorderHasAFile(t *testing.T) {
	t.Parallel()
	set, dir := written(t)
	for _, r := range set.All() {
		if _, err := os.Stat(filepath.Join(dir, r.Name()+".hlog")); err != nil {
			t.Error(err)
		}
	}
}

func TestAReaderOfTheFormatSeesTheIntervals(t *testing.T) {
	t.Parallel()
	_, dir := written(t)
	file, err := os.Open(filepath.Join(dir, "confirm.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader := hdrhistogram.NewHistogramLogReader(file)
	for i, want := range []struct{ count, start, end int64 }{{2, 0, 1000}, {0, 1000, 2000}, {1, 2000, 2500}} {
		h, err := reader.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d: %v, %v", i, h, err)
		}
		start, end := h.StartTimeMs()-began.UnixMilli(), h.EndTimeMs()-began.UnixMilli()
		if h.TotalCount() != want.count || start != want.start || end < want.end-1 || end > want.end {
			t.Errorf("interval %d: %d samples from %d to %d ms; want %d from %d to %d",
				i, h.TotalCount(), start, end, want.count, want.start, want.end)
		}
	}
	if h, err := reader.NextIntervalHistogram(); h != nil || err != nil {
		t.Errorf("a fourth interval: %v, %v", h, err)
	}
}

func TestTheHeadAndFootOfALogAreComments(t *testing.T) {
	t.Parallel()
	_, dir := written(t)
	text, err := os.ReadFile(filepath.Join(dir, "confirm.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, want := range map[int]string{
		0: "#[spillway confirm latency, values in nanoseconds]",
		1: "#[Histogram log format version 1.3]",
		2: fmt.Sprintf("#[StartTime: %d (seconds since epoch), 2026-01-02T03:04:05Z]", began.Unix()),
		3: `"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`,
		7: "#[Not recorded: 1 negative, 0 above 1h0m0s]",
	} {
		if len(lines) != 8 || lines[i] != want {
			t.Errorf("line %d of %d is %q, want %q", i, len(lines), lines[i], want)
		}
	}
}

func TestALogReadsBackAsItsRecorder(t *testing.T) {
	t.Parallel()
	set, dir := written(t)
	file, err := os.Open(filepath.Join(dir, "confirm.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	read, err := latency.ReadLog("confirm", file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(t, read), summary(t, set.Confirm); got != want || got.Count != 3 {
		t.Errorf("read back %+v, want %+v with 3 samples", got, want)
	}
}

func TestAFolderThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var path *fs.PathError
	if _, err := latency.NewSet().OpenLogs(filepath.Join(dir, "taken"), began); !errors.As(err, &path) {
		t.Errorf("error %v, want one that names the path: the folder is a file", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sojourn.hlog"), 0o700); err != nil {
		t.Fatal(err)
	}
	path = nil
	if _, err := latency.NewSet().OpenLogs(dir, began); !errors.As(err, &path) {
		t.Errorf("error %v, want one that names the path: a log is a folder", err)
	}
}

func TestABrokenLogIsAnError(t *testing.T) {
	t.Parallel()
	wide := hdrhistogram.New(1, int64(1000*time.Hour), 3)
	if err := wide.RecordValue(int64(500 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := hdrhistogram.NewHistogramLogWriter(&text).OutputIntervalHistogram(wide); err != nil {
		t.Fatal(err)
	}
	if _, err := latency.ReadLog("sojourn", &text); !errors.Is(err, latency.ErrOutOfBounds) {
		t.Errorf("error %v, want %v", err, latency.ErrOutOfBounds)
	}
	if _, err := latency.ReadLog("sojourn", strings.NewReader("0.1,1.0,2.0,HISTFnonsense\n")); err == nil {
		t.Error("an interval that cannot be decoded was read")
	}
}

func FuzzReadLog(f *testing.F) {
	var text bytes.Buffer
	h := hdrhistogram.New(1, int64(time.Hour), 3)
	_ = h.RecordValue(12345)
	_ = hdrhistogram.NewHistogramLogWriter(&text).OutputIntervalHistogram(h)
	f.Add(text.String())
	f.Add("#[StartTime: 1.5 (seconds)\nTag=x\n\n1,2,3,")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := latency.ReadLog("confirm", strings.NewReader(text))
		if (r == nil) == (err == nil) {
			t.Fatalf("recorder %v with error %v", r, err)
		}
	})
}
