package profile

import (
	"reflect"
	"testing"
	"time"
)

func TestSettingsReachEveryKindOfKey(t *testing.T) {
	t.Parallel()
	text := sound + "faults: [{kind: postgres.stop, from: 1s, for: 1s}]\n"
	p := parseText(t, text,
		Set{Path: "load.rate", Value: "500"},
		Set{Path: "load.rate", Value: "600"},
		Set{Path: "topology.tiers", Value: "[1s,2s]"},
		Set{Path: "faults.0.for", Value: "3s"},
		Set{Path: "faults.1", Value: "{kind: workers.fail, from: 5, for: 1, fail: {transient: 1}}"},
		Set{Path: "workers.breaker.enabled", Value: "true"},
		Set{Path: "expect.shed", Value: "any"},
		Set{Path: "description", Value: "a: b # c"},
		Set{Path: "labels.git.branch", Value: "main"},
		Set{Path: "thresholds.0", Value: "messages.lost==0"},
		Set{Path: "load.warmup", Value: "5"})
	if p.Load.Rate != 600 || p.Load.Warmup != 5*time.Second {
		t.Errorf("rate %v and warmup %v, want 600 and 5s", p.Load.Rate, p.Load.Warmup)
	}
	if want := []time.Duration{time.Second, 2 * time.Second}; !reflect.DeepEqual(p.Topology.Tiers, want) {
		t.Errorf("tiers %v, want %v", p.Topology.Tiers, want)
	}
	want := []Fault{{Kind: "postgres.stop", From: time.Second, For: 3 * time.Second, Times: 1, Side: SideBoth, Point: PointAfterCommit, Leave: 1, Binding: BindingOrders, By: ByBinding, Minority: MinorityLeader, Target: TargetBroker, Delay: 100 * time.Millisecond, Bandwidth: 65536},
		{Kind: "workers.fail", From: 5 * time.Second, For: time.Second, Fail: Fail{Transient: 1}, Times: 1, Side: SideBoth, Point: PointAfterCommit, Leave: 1, Binding: BindingOrders, By: ByBinding, Minority: MinorityLeader, Target: TargetBroker, Delay: 100 * time.Millisecond, Bandwidth: 65536}}
	if !reflect.DeepEqual(p.Faults, want) {
		t.Errorf("faults %+v, want %+v", p.Faults, want)
	}
	if !p.Workers.Breaker.Enabled || p.Expect.Shed != nil {
		t.Errorf("breaker %v and shed %v, want true and no check", p.Workers.Breaker.Enabled, p.Expect.Shed)
	}
	if p.Description != "a: b # c" || p.Labels["git.branch"] != "main" || len(p.Thresholds) != 1 {
		t.Errorf("description %q, labels %v, thresholds %v", p.Description, p.Labels, p.Thresholds)
	}
}

func TestOneItemOfADefaultListCanBeSet(t *testing.T) {
	t.Parallel()
	p := parseText(t, sound, Set{Path: "topology.tiers.0", Value: "3s"})
	want := []time.Duration{3 * time.Second, 30 * time.Second, 5 * time.Minute}
	if !reflect.DeepEqual(p.Topology.Tiers, want) {
		t.Errorf("tiers %v, want %v", p.Topology.Tiers, want)
	}
}

func TestASettingMendsAnUnsoundFile(t *testing.T) {
	t.Parallel()
	p := parseText(t, "name: a\nload: {rate: 0, duration: 1s}\n", Set{Path: "load.rate", Value: "5"})
	if p.Load.Rate != 5 {
		t.Errorf("rate %v, want 5", p.Load.Rate)
	}
}

func TestProblemsOfSettingsNameTheSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  Set
		want string
	}{
		{"a value of the wrong type", Set{Path: "load.rate", Value: "abc"}, `--set load.rate=abc: load.rate: "abc" is not a finite number`},
		{"a flag is named by its own words", Set{Path: "load.rate", Value: "0", Words: "--rate 0"}, `--rate 0: load.rate: is required, above 0, unless load.mode is closed or every part of load.shape is a replay`},
		{"an unknown path", Set{Path: "load.rat", Value: "1"}, `--set load.rat=1: load.rat: unknown key; did you mean "rate"?`},
		{"a key below a value", Set{Path: "load.rate.x", Value: "1"}, `--set load.rate.x=1: load.rate: has no keys below it`},
		{"an item far past the end", Set{Path: "faults.3.for", Value: "1s"}, `--set faults.3.for=1s: faults.3: is not an item: faults has 0, numbered from 0; 0 appends one`},
		{"an item that is no number", Set{Path: "faults.x", Value: "1s"}, `--set faults.x=1s: faults.x: is not an item: faults has 0, numbered from 0; 0 appends one`},
		{"no value", Set{Path: "load.rate", Value: ""}, `--set load.rate=: load.rate: is empty; want a number`},
		{"a value that is no YAML", Set{Path: "topology.tiers", Value: "[1s"}, `--set topology.tiers=[1s: topology.tiers: is not valid YAML: sequence end token ']' not found`},
		{"a value that is no text", Set{Path: "labels.a", Value: "\xff", Words: "--label"}, `--label: is not valid UTF-8`},
		{"an empty path part", Set{Path: "load.", Value: "1"}, `--set load.=1: load.: unknown key; the keys of load are mode, rate, duration, warmup, arrivals, shape, catch_up, publishers, confirm_window, shed_after, size, sizes, skus, sku_draw, count_min, count_max, bad`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := problemsOf(t, sound, c.set).Error(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestParseSetTakesTheFirstEqualSign(t *testing.T) {
	t.Parallel()
	got, err := ParseSet("thresholds.0=messages.lost==0")
	if want := (Set{Path: "thresholds.0", Value: "messages.lost==0"}); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	for _, text := range []string{"load.rate", "=5", ""} {
		if _, err := ParseSet(text); err == nil {
			t.Errorf("%q was taken for a setting", text)
		}
	}
}
