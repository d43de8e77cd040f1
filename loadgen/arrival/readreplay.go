package arrival

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of ReadReplay, beside MaxReplay.
const (
	// MaxReplayBytes bounds a file of arrival times: MaxReplay lines of a hundred bytes, about.
	MaxReplayBytes = 1 << 30
	// MaxReplayProblems bounds how many problems are reported: a file of another format has one in every line.
	MaxReplayProblems = 20
	// maxLine bounds a line, in bytes; only its first column is of use.
	maxLine = 64 << 10
)

// Errors about one line of a file of arrival times, within a LineError.
var (
	// ErrBadTime is returned for what is neither a decimal number of seconds nor a time of RFC 3339.
	ErrBadTime = errors.New("neither seconds nor a time of RFC 3339")
	// ErrTimeRange is returned for seconds that no nanosecond clock holds, such as milliseconds since 1970.
	ErrTimeRange = errors.New("beyond the year 2262 in seconds since 1970")
	// ErrMixedTimes is returned for a time in another notation than the first one of the file.
	ErrMixedTimes = errors.New("seconds and times of RFC 3339 in one file")
)

// LineError is a problem in one line of a file.
type LineError struct {
	Line int // counted from 1
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the problem itself.
func (e *LineError) Unwrap() error { return e.Err }

// ReadReplay reads arrival times from CSV and returns them as offsets from the first, for NewReplay.
//
//	# what follows a number sign is a comment
//	time,size                              a first line that begins with a letter is a header
//	2026-03-01T12:00:00.000Z,512           only the first column counts
//	2026-03-01T12:00:00.250Z,480           -> 0s, 250ms
//
// The first column holds seconds, as decimals (of any origin, up to nanoseconds; further digits are cut off) or times of
// RFC 3339; one file keeps to one of the two. It may stand in double quotes. Blank lines, CRLF and a byte order mark are
// accepted. Times must not go back: a file that does has more often the wrong column in front, or a clock that was set,
// than it has good arrivals in bad order, and sorting would hide that.
//
// All problems are returned at once, joined, each a LineError; reading ends after MaxReplayProblems of them. They wrap
// ErrBadTime, ErrTimeRange, ErrMixedTimes, ErrOrder, ErrLongSpan or ErrLongReplay; a file without times gives ErrNoTimes.
func ReadReplay(r io.Reader) ([]time.Duration, error) {
	return readReplay(r, MaxReplay, MaxReplayBytes)
}

func readReplay(r io.Reader, maxTimes int, maxBytes int64) ([]time.Duration, error) {
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxLine)
	f := replayFile{maxTimes: maxTimes}
	for !f.done && lines.Scan() {
		f.take(lines.Text())
	}
	if limited.N == 0 {
		f.end(fmt.Errorf("%w: more than %d bytes", ErrLongReplay, maxBytes))
	}
	if err := lines.Err(); err != nil {
		f.line++
		f.end(err)
	}
	if len(f.times) == 0 && len(f.problems) == 0 {
		return nil, ErrNoTimes
	}
	if len(f.problems) > 0 {
		return nil, errors.Join(f.problems...)
	}
	return f.times, nil
}

// replayFile is what was read of a file so far.
type replayFile struct {
	maxTimes int
	line     int
	begun    bool // a line that is no comment was seen
	clock    bool // times of RFC 3339
	first    instant
	times    []time.Duration
	last     time.Duration
	known    bool // first is set
	problems []error
	done     bool
}

// instant is a point in time: seconds from some origin, and nanoseconds below 1e9.
type instant struct {
	seconds, nanos int64
}

// take reads one line.
func (f *replayFile) take(line string) {
	f.line++
	if f.line == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return
	}
	column, _, _ := strings.Cut(line, ",")
	column = strings.Trim(strings.TrimSpace(column), `"`)
	first, _ := utf8.DecodeRuneInString(column)
	if !f.begun && unicode.IsLetter(first) {
		f.begun = true
		return
	}
	f.begun = true
	if err := f.arrive(column); err != nil {
		f.fail(err)
	}
}

// arrive adds the arrival of a column.
func (f *replayFile) arrive(column string) error {
	at, clock, err := parseInstant(column)
	if err != nil {
		return fmt.Errorf("%w: %.40q", err, column)
	}
	if !f.known {
		f.first, f.clock, f.known = at, clock, true
	}
	if clock != f.clock {
		return fmt.Errorf("%w: %q", ErrMixedTimes, column)
	}
	if at.seconds-f.first.seconds > int64(MaxSpan/time.Second) { // both within +-2^38: years have four digits
		return fmt.Errorf("%w: %q", ErrLongSpan, column)
	}
	due := time.Duration(at.seconds-f.first.seconds)*time.Second + time.Duration(at.nanos-f.first.nanos)
	if at.seconds < f.first.seconds || due < f.last { // the first says so where due has overflowed
		return fmt.Errorf("%w: %q", ErrOrder, column)
	}
	if due >= MaxSpan {
		return fmt.Errorf("%w: %q", ErrLongSpan, column)
	}
	if len(f.times) == f.maxTimes {
		f.done = true
		return fmt.Errorf("%w: more than %d arrivals", ErrLongReplay, f.maxTimes)
	}
	f.times, f.last = append(f.times, due), due
	return nil
}

// fail notes a problem of the current line.
func (f *replayFile) fail(err error) {
	f.problems = append(f.problems, &LineError{Line: f.line, Err: err})
	if len(f.problems) == MaxReplayProblems {
		f.done = true
		f.problems = append(f.problems, fmt.Errorf("reading ended after %d problems", MaxReplayProblems))
	}
}

// end notes a problem that ends the reading, whatever was found before.
func (f *replayFile) end(err error) {
	f.problems = append(f.problems, &LineError{Line: f.line, Err: err})
	f.done = true
}

// parseInstant reads a time in either notation and says whether it was one of RFC 3339.
func parseInstant(text string) (at instant, clock bool, err error) {
	if strings.Contains(text, ":") {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return instant{}, true, ErrBadTime
		}
		return instant{t.Unix(), int64(t.Nanosecond())}, true, nil
	}
	at, err = parseSeconds(text)
	return at, false, err
}

// parseSeconds reads digits as digits: a float has too few of them for nanoseconds since 1970. Only numbers with an
// exponent, which some tools print for small ones, go through a float.
func parseSeconds(text string) (instant, error) {
	if strings.ContainsAny(text, "eE") {
		return parseExponent(text)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if !digits(whole) || whole+fraction == "" || !digits(fraction) {
		return instant{}, ErrBadTime
	}
	seconds, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil || seconds >= math.MaxInt64/int64(time.Second) {
		return instant{}, ErrTimeRange
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return instant{seconds, nanos}, err
}

func parseExponent(text string) (instant, error) {
	value, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) || value >= math.MaxInt64/float64(time.Second)-1 {
		return instant{}, ErrTimeRange
	}
	if err != nil || !(value >= 0) {
		return instant{}, ErrBadTime
	}
	whole, fraction := math.Modf(value)
	return instant{int64(whole), int64(fraction * float64(time.Second))}, nil
}

// digits says whether text holds nothing but decimal digits.
func digits(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
