package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// tailBytes bounds how much of a log is read for its end.
	tailBytes = 64 << 10
	// tailWidth bounds a line of it: Erlang writes a whole crash report into one.
	tailWidth = 300
	// logTail is how many lines of a log an error shows.
	logTail = 15
)

// tail returns the last lines of a file; what went wrong stands in for them.
func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd) // reading from the start instead is only slower
	}
	text, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return fmt.Sprintf("(log unreadable: %v)", err)
	}
	return lastLines(text, lines)
}

// lastLines returns the end of a text, with long lines cut.
func lastLines(text []byte, lines int) string {
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		if len(line) > tailWidth {
			all[i] = strings.ToValidUTF8(line[:tailWidth], "") + " ..."
		}
	}
	return strings.Join(all, "\n")
}

// copyFile writes a copy of a file, with the usual rights.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
