package result

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestTheSeriesHasAFixedHeaderAndEmptyCellsForTheUnknown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w, err := NewSeriesWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	rows := []Row{
		{Elapsed: 1, Phase: "warm-up", Offered: 400, Sent: 401, Confirmed: 399, BreakerState: "closed", Ready: Level(0), OldestWork: Level(0.0123456)},
		{Elapsed: 2.0000004, Phase: "load", Retried: 7, ReturnedFromRetry: 5, Unacked: Level(100), RetryDebt: Level(math.NaN()), Fault: "postgres.stop+workers.fail", Refused: 3},
	}
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "series.csv", b.String())
}

func TestEveryFieldOfARowHasAColumn(t *testing.T) {
	t.Parallel()
	if got, want := len(SeriesColumns()), reflect.TypeFor[Row]().NumField(); got != want {
		t.Errorf("%d columns for %d fields", got, want)
	}
	sorted := slices.Sorted(slices.Values(SeriesColumns()))
	if len(slices.Compact(sorted)) != len(SeriesColumns()) {
		t.Error("two columns have one name")
	}
	for i := range reflect.TypeFor[Row]().NumField() {
		if !changesALine(i) {
			t.Errorf("no column shows %s", reflect.TypeFor[Row]().Field(i).Name)
		}
	}
}

// changesALine reports whether a row differs from the empty one in exactly one cell when its i-th field is set.
func changesALine(i int) bool {
	var row Row
	switch f := reflect.ValueOf(&row).Elem().Field(i); f.Interface().(type) {
	case int64:
		f.SetInt(7)
	case float64:
		f.SetFloat(7)
	case string:
		f.SetString("7")
	case Gauge:
		f.Set(reflect.ValueOf(Level(7)))
	}
	changed := 0
	for _, c := range columns() {
		if c.cell(&row) != c.cell(&Row{}) {
			changed++
		}
	}
	return changed == 1
}

type fullDisk struct{}

var errFull = errors.New("full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestASeriesThatCannotBeWrittenSaysSo(t *testing.T) {
	t.Parallel()
	if _, err := NewSeriesWriter(fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the writer's error", err)
	}
}
