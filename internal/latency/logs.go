package latency

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Logs are the files of a Set, one for each recorder. Not safe for concurrent use: one goroutine rotates and closes.
type Logs struct {
	set   *Set
	start time.Time // wall time of the run's start, to which offsets are added
	last  time.Duration
	logs  []*Log // in the order of set.All
}

// OpenLogs creates dir and a log in it for each recorder: dir/confirm.hlog and so on. start is the start of the run's
// time base. The caller closes them.
func (s *Set) OpenLogs(dir string, start time.Time) (*Logs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of latency logs: %w", err)
	}
	l := &Logs{set: s, start: start}
	for _, r := range s.All() {
		log, err := OpenLog(dir, r.Name(), start)
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.logs = append(l.logs, log)
	}
	return l, nil
}

// Rotate writes what was recorded since the last call, or since the start, as the interval that ends at now, an offset
// on the run's time base. It is meant to be called every few seconds. All files are tried; errors are joined.
func (l *Logs) Rotate(now time.Duration) error {
	from, to := l.start.Add(l.last), l.start.Add(now)
	l.last = now
	var err error
	all := l.set.All()
	for i, r := range all {
		if !r.repeats(all[:i]) {
			err = errors.Join(err, r.Interval(from, to, l.of(r)...))
		}
	}
	return err
}

// of returns the logs of a recorder, one for each of its names.
func (l *Logs) of(r *Recorder) (logs []*Log) {
	for i, other := range l.set.All() {
		if other.samples == r.samples {
			logs = append(logs, l.logs[i])
		}
	}
	return logs
}

// Close writes the last interval, ending at now, and closes every file. It is called once.
func (l *Logs) Close(now time.Duration) error {
	return errors.Join(l.Rotate(now), l.close())
}

func (l *Logs) close() error {
	var err error
	for i, log := range l.logs {
		err = errors.Join(err, log.Close(l.set.All()[i]))
	}
	return err
}
