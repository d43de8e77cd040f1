package profile

import (
	"errors"
	"math"
	"testing"
)

func TestThresholdsParse(t *testing.T) {
	t.Parallel()
	for _, want := range []Threshold{
		{"latency_seconds.confirm.p99", "<", 0.05, "latency_seconds.confirm.p99<50ms"},
		{"messages.parked", "==", 12, "messages.parked==12"},
		{"rates.applied_per_second", ">=", 1000, "rates.applied_per_second >= 1e3"},
		{"oldest_age_seconds.work.p99", "<=", 90, "oldest_age_seconds.work.p99<=1m30s"},
		{"faults.0.storm.amplification", ">", -0.5, "faults.0.storm.amplification>-0.5"},
		{"messages.parked_by_reason.bad-json", "==", 0, "messages.parked_by_reason.bad-json==0"},
	} {
		got, err := ParseThreshold(want.Text)
		if err != nil || got != want {
			t.Errorf("%q is %+v with %v, want %+v", want.Text, got, err, want)
		}
	}
}

func TestWhatIsNoThresholdIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "a<", "<5", "a<b", "a=5", "a=<5", "a!=5", "a<5<6", "a b<5", "a..b<5", ".a<5", "a.<5", "a<NaN", "a<inf", "a<0x10", "a<1s1"} {
		if _, err := ParseThreshold(text); !errors.Is(err, ErrThreshold) {
			t.Errorf("%q gave %v, want ErrThreshold", text, err)
		}
	}
}

func TestAThresholdHoldsByItsOperator(t *testing.T) {
	t.Parallel()
	for op, want := range map[string][3]bool{ // below, at, above
		"<": {true, false, false}, "<=": {true, true, false}, "==": {false, true, false}, ">=": {false, true, true}, ">": {false, false, true}, "": {},
	} {
		th := Threshold{Op: op, Value: 5}
		if got := [3]bool{th.Holds(4), th.Holds(5), th.Holds(6)}; got != want {
			t.Errorf("%q holds %v for 4, 5, 6; want %v", op, got, want)
		}
		if th.Holds(math.NaN()) {
			t.Errorf("%q holds for NaN", op)
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	f.Add("a.b<5ms")
	f.Add("a==")
	f.Fuzz(func(t *testing.T, text string) {
		if th, err := ParseThreshold(text); err == nil && (math.IsNaN(th.Value) || math.IsInf(th.Value, 0) || th.Path == "") {
			t.Errorf("%q is taken as %+v", text, th)
		}
	})
}
