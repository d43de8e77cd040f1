package arrival

import (
	"bufio"
	"errors"
	"strings"
	"testing"
)

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
