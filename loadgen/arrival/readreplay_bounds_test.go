package arrival

import (
	"bufio"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestALineErrorNamesItsLine(t *testing.T) {
	t.Parallel()
	err := &LineError{Line: 7, Err: ErrOrder}
	if got, want := err.Error(), "line 7: arrival times go back"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAReplayIsReadWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		times      int
		bytes      int64
		want       error
	}{
		{"as many arrivals as allowed", "1\n2\n3\n", 3, 100, nil},
		{"one more", "1\n2\n3\n4\n", 3, 100, ErrLongReplay},
		{"as many bytes as allowed", "1\n2\n3\n", 9, 6, nil},
		{"one more", "1\n2\n3\n\n", 9, 6, ErrLongReplay},
		{"comments count as bytes", strings.Repeat("#\n", 100), 9, 50, ErrLongReplay},
		{"a line without end", "1\n" + strings.Repeat("2", maxLine), 9, 1 << 20, bufio.ErrTooLong},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			times, err := readReplay(strings.NewReader(row.text), row.times, row.bytes)
			if !errors.Is(err, row.want) || (err == nil) != (len(times) == 3) {
				t.Errorf("%d times, error %v, want %v", len(times), err, row.want)
			}
		})
	}
}

// The chance of this is one in 2^53 an arrival, too rare for a seed.
func TestADrawOnTheEndDoesNotFallIntoAPauseBehindIt(t *testing.T) {
	t.Parallel()
	flat, err := NewFlat(8, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	pause, err := NewFlat(0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := NewSequence(flat, pause)
	if err != nil {
		t.Fatal(err)
	}
	p := newShaped(shape.(part), 1)
	p.left = 0
	if due, ok := p.Next(); !ok || due > time.Second {
		t.Errorf("due %s, %v; the pause begins at %s", due, ok, time.Second)
	}
}
