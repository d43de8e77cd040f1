package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheSeriesIsCountedAsItGrows(t *testing.T) {
	t.Parallel()
	s := &seriesCounter{path: filepath.Join(t.TempDir(), "series.csv")}
	if got := s.offered(); got != 0 {
		t.Errorf("%d messages before there is a file", got)
	}
	var text string
	for _, row := range []struct {
		more string
		want int64
	}{
		{"elapsed_seconds,phase,offered,sent\n", 0}, {"1,load,100,99\n2,load,50", 100}, {"0,499\n", 600}, {"", 600}, {"3,drain,7,7\n", 607},
	} {
		text += row.more
		if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.offered(); got != row.want {
			t.Errorf("%d messages after %q, want %d", got, row.more, row.want)
		}
	}
}

func TestALevelIsTheMedianOfItsMillion(t *testing.T) {
	t.Parallel()
	seen := []resident{{0, 10}, {900_000, 30}, {999_999, 20}, {1_000_000, 40}, {3_200_000, 50}}
	if got, want := levelsOf(seen, 3), []float64{20, 40, 0}; !slices.Equal(got, want) {
		t.Errorf("levels %v, want %v", got, want)
	}
}

func TestMemoryIsFlatWhenTheLastMillionIsNearTheSecond(t *testing.T) {
	t.Parallel()
	levels := []float64{30e6, 50e6, 51e6, 50e6, 52e6, 53e6, 53e6, 54e6, 54e6, 54e6}
	s, err := memory{}.section(levels, 90e6, 10_000_123)
	if err != nil || s.Rows[0].Verdict != met || s.Rows[0].Value.Mid != 90 || s.Rows[1].Verdict != met || s.Rows[1].Value.Mid != 1.08 {
		t.Errorf("%+v, %v", s.Rows, err)
	}
	if !strings.Contains(s.Notes[0], "+0.5 MB for each million") {
		t.Errorf("note %q", s.Notes[0])
	}
	levels[9] = 56e6
	if s, err = (memory{}).section(levels, 401e6, 10_000_123); err != nil || s.Rows[0].Verdict != missed || s.Rows[1].Verdict != missed {
		t.Errorf("%+v, %v", s.Rows, err)
	}
	if s, err = (memory{}).section(levels[:9], 90e6, 9_000_000); err != nil || s.Rows[0].Verdict != undecided {
		t.Errorf("nine millions are judged: %+v, %v", s.Rows, err)
	}
	levels[4] = 0
	if _, err := (memory{}).section(levels, 90e6, 10_000_123); !errors.Is(err, errNoMemory) {
		t.Errorf("a million that was not seen gives %v", err)
	}
}

func TestKibibytesAreReadAsTheKernelWritesThem(t *testing.T) {
	t.Parallel()
	if got := kibibytes("46444 kB"); got != 46444*1024 {
		t.Errorf("%d bytes", got)
	}
	if got := kibibytes(""); got != 0 {
		t.Errorf("%d bytes of nothing", got)
	}
}
