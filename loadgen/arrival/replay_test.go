package arrival_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"spillway/loadgen/arrival"
)

func TestAReplayIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	const s = time.Second
	times := []time.Duration{0, 1, 1, 700 * time.Millisecond, 2 * s, 2 * s}
	file := must(arrival.NewReplay(times))
	if got := instants(process(t, file, arrival.Constant, 0)); !slices.Equal(got, times) {
		t.Errorf("instants %v, want %v", got, times)
	}
	if got, want := file.Span(), 2*s+1; got != want {
		t.Errorf("span %s, want %s", got, want)
	}
	for _, row := range []struct {
		at             time.Duration
		rate, integral float64
	}{{-s, 4, 0}, {0, 4, 0}, {1, 4, 1}, {2, 4, 3}, {s, 0, 4}, {2 * s, 2, 4}, {2*s + 1, 2, 6}, {9 * s, 2, 6}} {
		if rate, n := file.Rate(row.at), file.Integral(row.at); rate != row.rate || n != row.integral {
			t.Errorf("at %s: rate %v, integral %v, want %v and %v", row.at, rate, n, row.rate, row.integral)
		}
	}
}

func TestAReplayInASequenceKeepsItsInstants(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	file := must(arrival.NewReplay([]time.Duration{0, 300 * ms, 300 * ms}))
	for _, row := range []struct {
		name   string
		before float64
		want   []time.Duration
	}{
		{"after whole arrivals", 2, []time.Duration{0, 500 * ms, s, 1300 * ms, 1300 * ms, 1300*ms + 1, 1800*ms + 1}},
		// Two and a half arrivals before it have begun a third; the half is over when the flat shape has offered another.
		{"after half an arrival", 2.5, []time.Duration{0, 400 * ms, 800 * ms, s, 1300 * ms, 1300 * ms, 1550*ms + 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			shape := must(arrival.NewSequence(must(arrival.NewFlat(row.before, s)), file, must(arrival.NewFlat(2, s))))
			if got := instants(process(t, shape, arrival.Constant, 0)); !slices.Equal(got, row.want) {
				t.Errorf("instants %v, want %v", got, row.want)
			}
		})
	}
}

func TestReadReplayReadsWhatToolsWrite(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, row := range []struct {
		name, text string
		want       []time.Duration
	}{
		{"seconds", "0\n0.25\n0.5\n", []time.Duration{0, 250 * ms, 500 * ms}},
		{"seconds of any origin", "12.5\n13", []time.Duration{0, 500 * ms}},
		{"nanoseconds since 1970 keep their digits", "1700000000.123456789\n1700000000.123456790\n", []time.Duration{0, 1}},
		{"digits after the ninth are cut off", "0\n0.0000000019\n", []time.Duration{0, 1}},
		{"a number may begin or end with its point", "0.\n.5\n", []time.Duration{0, 500 * ms}},
		{"a small number with an exponent", "0\n5e-05\n1.5E1\n", []time.Duration{0, 50 * time.Microsecond, 15 * time.Second}},
		{"times of RFC 3339", "2026-03-01T12:00:00Z\n2026-03-01T12:00:00.250Z\n2026-03-01T13:00:01+01:00\n",
			[]time.Duration{0, 250 * ms, time.Second}},
		{"a borrowed second", "1.9\n2.1\n", []time.Duration{0, 200 * ms}},
		{"a header, quotes, other columns and spaces", "\"time\",size\n\"1\" , 512\n \"2\",\"a,b\"\n", []time.Duration{0, time.Second}},
		{"comments, blank lines, CRLF and a byte order mark", "\ufeff# made by hand\r\n\r\ntime\r\n1\r\n  # half way\r\n2\r\n",
			[]time.Duration{0, time.Second}},
		{"equal times", "7\n7\n7\n", []time.Duration{0, 0, 0}},
		{"one arrival", "7", []time.Duration{0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := arrival.ReadReplay(strings.NewReader(row.text))
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("%v, error %v, want %v", got, err, row.want)
			}
		})
	}
}

// problem is what was found in a line.
type problem struct {
	line int
	err  error
}

func TestReadReplayReportsAllProblemsWithTheirLines(t *testing.T) {
	t.Parallel()
	const many = arrival.MaxReplayProblems
	for _, row := range []struct {
		name, text string
		want       []problem
	}{
		{"words, a second header, nothing", "time\n1\nsoon\n2\n,5\n1.2.3\n-1\n1,5",
			[]problem{{3, arrival.ErrBadTime}, {5, arrival.ErrBadTime}, {6, arrival.ErrBadTime}, {7, arrival.ErrBadTime}, {8, arrival.ErrOrder}}},
		{"lines are counted with comments", "# one\n\n12:30\n", []problem{{3, arrival.ErrBadTime}}},
		{"only a point", "1\n.\n", []problem{{2, arrival.ErrBadTime}}},
		{"a broken exponent", "1\n2e\n1e-\n0x1e3\n-1e3\n", []problem{
			{2, arrival.ErrBadTime}, {3, arrival.ErrBadTime}, {4, arrival.ErrBadTime}, {5, arrival.ErrBadTime}}},
		{"milliseconds since 1970", "1700000000123\n", []problem{{1, arrival.ErrTimeRange}}},
		{"more digits than an integer", "1" + strings.Repeat("0", 40), []problem{{1, arrival.ErrTimeRange}}},
		{"an exponent out of range", "1e15\n1e999\n", []problem{{1, arrival.ErrTimeRange}, {2, arrival.ErrTimeRange}}},
		{"two notations", "1\n2026-03-01T12:00:00Z\n2\n", []problem{{2, arrival.ErrMixedTimes}}},
		{"times that go back, against the last good one", "1\n3\n2\n2.5\n4\n", []problem{{3, arrival.ErrOrder}, {4, arrival.ErrOrder}}},
		{"times that go back before the first", "2026-03-01T12:00:00Z\n1026-03-01T12:00:00Z\n", []problem{{2, arrival.ErrOrder}}},
		{"a century", "1926-03-01T12:00:00Z\n2026-03-01T12:00:00Z\n", []problem{{2, arrival.ErrLongSpan}}},
		{"a nanosecond too long", "0\n9007199.254740991\n9007199.254740992\n", []problem{{3, arrival.ErrLongSpan}}},
		{"a field that never ends in quotes", "1\n\"2\n3\n\"x\n", []problem{{4, arrival.ErrBadTime}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			times, err := arrival.ReadReplay(strings.NewReader(row.text))
			checkProblems(t, err, row.want)
			if times != nil {
				t.Errorf("times %v beside problems", times)
			}
		})
	}
	t.Run("no more than the bound, and the reading ends", func(t *testing.T) {
		t.Parallel()
		_, err := arrival.ReadReplay(strings.NewReader("1\n" + strings.Repeat("soon\n", 10*many)))
		got := problems(err)
		if len(got) != many+1 {
			t.Fatalf("%d problems, want %d and a line that says so", len(got), many)
		}
		if last := new(arrival.LineError); errors.As(got[many], &last) {
			t.Errorf("the last line is about line %d, want that reading ended", last.Line)
		}
	})
}

func problems(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	return joined.Unwrap()
}

func checkProblems(t *testing.T, err error, want []problem) {
	t.Helper()
	got := problems(err)
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d: %v", len(got), len(want), err)
	}
	for i, each := range got {
		line := new(arrival.LineError)
		if !errors.As(each, &line) || line.Line != want[i].line || !errors.Is(each, want[i].err) {
			t.Errorf("problem %d is %q, want line %d: %v", i, each, want[i].line, want[i].err)
		}
	}
}

func TestAFileWithoutTimesIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", "# nothing\n", "time\n"} {
		if _, err := arrival.ReadReplay(strings.NewReader(text)); !errors.Is(err, arrival.ErrNoTimes) {
			t.Errorf("%q: error %v, want %v", text, err, arrival.ErrNoTimes)
		}
	}
}

var errDisk = errors.New("disk on fire")

func TestAFileThatCannotBeReadSaysWhere(t *testing.T) {
	t.Parallel()
	_, err := arrival.ReadReplay(io.MultiReader(strings.NewReader("1\n2\n"), failing{}))
	checkProblems(t, err, []problem{{3, errDisk}})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDisk }

func FuzzReadReplay(f *testing.F) {
	for _, seed := range []string{
		"0\n0.25\n", "time,size\n1,2\n", "2026-03-01T12:00:00Z\n2026-03-01T12:00:00.25Z\n", "# c\n\n5e-05\n", "1\n0\n",
		"1700000000.123456789\n", "\ufeff1\r\n2\r\n", "\"1\"\n\"2", "9223372036.0\n", "0000-01-01T00:00:00Z\n9999-12-31T23:59:59Z\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		times, err := arrival.ReadReplay(strings.NewReader(text))
		if err != nil {
			if times != nil {
				t.Errorf("%d times beside %v", len(times), err)
			}
			return
		}
		if times[0] != 0 || len(times) > strings.Count(text, "\n")+1 {
			t.Errorf("%d times from %s", len(times), times[0])
		}
		shape, err := arrival.NewReplay(times)
		if err != nil {
			t.Fatalf("what was read is no replay: %v", err)
		}
		if got := instants(process(t, shape, arrival.Constant, 0)); !slices.Equal(got, times) {
			t.Errorf("instants %v, want %v", got, times)
		}
	})
}
