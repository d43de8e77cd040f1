package outbox

import (
	"testing"
	"time"
)

var noon = time.Unix(1_800_000_000, 0)

// due returns rows that fell due so long before noon.
func due(ages ...time.Duration) (rows []row) {
	for _, a := range ages {
		rows = append(rows, row{due: noon.Add(-a)})
	}
	return rows
}

func TestTheFloor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		begin time.Duration // the floor before, before noon
		sweep bool
		rows  []row
		want  time.Duration // the floor after, before noon
	}{
		{"rises to the oldest row taken", time.Hour, false, due(time.Minute, 2*time.Minute, time.Second), 2 * time.Minute},
		{"stays behind the present by the slack when young rows are taken", time.Hour, false, due(time.Millisecond), floorSlack},
		{"rises to the slack when nothing is left", time.Hour, false, nil, floorSlack},
		{"is not lowered by a claim that began before it rose", time.Minute, false, due(time.Hour), time.Minute},
		{"is lowered by a sweep to what was found behind it", time.Minute, true, due(time.Second, time.Hour), time.Hour},
		{"rises to the slack after an empty sweep", time.Minute, true, nil, floorSlack},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := floor{at: noon.Add(-c.begin), next: noon.Add(time.Hour)}
			f.saw(c.sweep, c.rows, noon)
			if from, sweep := f.claim(noon); sweep || !from.Equal(noon.Add(-c.want)) {
				t.Errorf("the next claim begins %v before noon, sweep %t; want %v", noon.Sub(from), sweep, c.want)
			}
		})
	}
}

func TestSweepsComeAgainHoweverMuchIsFoundAboveTheFloor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took, every time.Duration
	}{
		{time.Millisecond, sweepEvery}, {100 * time.Millisecond, 2 * time.Second}, {time.Minute, sweepAtMost},
	} {
		var f floor
		sweeps := 0
		for elapsed := time.Duration(0); elapsed < 10*c.every; elapsed += c.every / 10 {
			from, sweep := f.claim(noon.Add(elapsed))
			if sweep != from.IsZero() {
				t.Fatalf("after %v a claim starts at %v, sweep %t", elapsed, from, sweep)
			}
			if sweep {
				sweeps++
				f.swept(noon.Add(elapsed), c.took)
			}
			f.saw(sweep, due(0), noon.Add(elapsed))
		}
		if sweeps != 10 {
			t.Errorf("sweeps of %v: %d in ten times %v", c.took, sweeps, c.every)
		}
	}
}

func TestOneSweepAtATime(t *testing.T) {
	t.Parallel()
	var f floor
	if _, sweep := f.claim(noon); !sweep {
		t.Error("the first claim is no sweep")
	}
	if _, sweep := f.claim(noon); sweep {
		t.Error("another lane sweeps beside the first")
	}
}
