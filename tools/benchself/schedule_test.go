package main

import (
	"errors"
	"testing"
)

func TestASecondCountsWhenItIsWithinHalfAPercent(t *testing.T) {
	t.Parallel()
	var r outcome
	r.Latency.ScheduleLag = &struct{ P99 float64 }{0.0015}
	r.Publish.SentEachSecond = []int64{5000, 4975, 5025, 4974, 5026, 5000}
	r.Messages.Offered, r.Messages.Confirmed = scheduleTotal, scheduleTotal-2
	r.Environment.Host.Steal = 0.004
	got, err := keptOf(r)
	if want := (kept{lag: 1.5, within: 4, least: 4974, most: 5026, missing: 2, steal: 0.004}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	r.Latency.ScheduleLag = nil
	if _, err := keptOf(r); !errors.Is(err, errSpoilt) {
		t.Errorf("a run without a lag gives %v", err)
	}
}

func TestTheWorstRunIsJudgedButForTheLag(t *testing.T) {
	t.Parallel()
	runs := []kept{{lag: 1, within: 30}, {lag: 9, within: 29}, {lag: 1.5, within: 30}, {lag: 1.2, within: 30, missing: 1}, {lag: 8, within: 30}}
	rows := schedule{}.section(runs).Rows
	if rows[0].Value.Mid != 1.5 || rows[0].Verdict != met {
		t.Errorf("lag %v %s, want the median 1.5, met", rows[0].Value.Mid, rows[0].Verdict)
	}
	if rows[1].Value.Mid != 29 || rows[1].Verdict != met || rows[2].Value.Mid != 1 || rows[2].Verdict != missed {
		t.Errorf("%v %s seconds, %v %s off; want 29 met, 1 missed", rows[1].Value.Mid, rows[1].Verdict, rows[2].Value.Mid, rows[2].Verdict)
	}
	if row := (schedule{}).section(runs[:4]).Rows[0]; row.Verdict != undecided {
		t.Errorf("four runs are judged: %s", row.Verdict)
	}
}
