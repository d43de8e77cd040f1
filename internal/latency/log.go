package latency

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Log is one file in the HdrHistogram log format 1.3, which the tools of that family read: a line for each interval,
// with its start in seconds since the Unix epoch, its length in seconds, its maximum in milliseconds, and the encoded
// histogram, whose values are nanoseconds. Not safe for concurrent use; who opened it closes it.
type Log struct {
	file   *os.File
	buffer *bufio.Writer
	writer *hdrhistogram.HistogramLogWriter
}

// OpenLog creates dir/name.hlog, replacing a former one, and writes its head. start is the wall time of the run's start.
func OpenLog(dir, name string, start time.Time) (*Log, error) {
	path := filepath.Join(dir, name+".hlog")
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create latency log: %w", err)
	}
	buffer := bufio.NewWriter(file)
	l := &Log{file: file, buffer: buffer, writer: hdrhistogram.NewHistogramLogWriter(buffer)}
	if err := l.head(name, start); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), file.Close())
	}
	return l, nil
}

// head writes the lines before the first interval. There is no base time: intervals carry the full wall time, since
// the format's base time has whole seconds only.
func (l *Log) head(name string, start time.Time) error {
	return errors.Join(
		l.writer.OutputComment(fmt.Sprintf("[spillway %s latency, values in nanoseconds]", name)),
		l.writer.OutputLogFormatVersion(),
		l.writer.OutputStartTime(start.UnixMilli()),
		l.writer.OutputLegend(),
	)
}

func (l *Log) write(line string) error {
	if _, err := l.buffer.WriteString(line); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	return nil
}

// Close notes how many samples of r lay out of range, flushes and closes the file. It is called once.
func (l *Log) Close(r *Recorder) error {
	note := fmt.Sprintf("[Not recorded: %d negative, %d above %s]", r.Negatives(), r.Overflows(), Max)
	err := errors.Join(l.writer.OutputComment(note), l.buffer.Flush(), l.file.Close())
	if err != nil {
		return fmt.Errorf("close %s: %w", l.file.Name(), err)
	}
	return nil
}

// ReadLog returns a recorder with every interval of a log merged. Its out-of-range counts are zero: the format has no
// place for them but a comment. A line that is no interval is passed over, as the format asks; an interval that cannot
// be decoded is an error, and so is one whose values lie outside a Recorder's bounds.
func ReadLog(name string, from io.Reader) (*Recorder, error) {
	r := NewRecorder(name)
	reader := hdrhistogram.NewHistogramLogReader(from)
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			return nil, fmt.Errorf("read latency log %s: %w", name, err)
		}
		if h == nil {
			return r, nil
		}
		if dropped := r.total.Merge(h); dropped > 0 {
			return nil, fmt.Errorf("read latency log %s: %w: %d", name, ErrOutOfBounds, dropped)
		}
	}
}

// ErrOutOfBounds is returned by ReadLog for a log with samples that a Recorder cannot hold.
var ErrOutOfBounds = errors.New("samples outside the bounds of a recorder")
