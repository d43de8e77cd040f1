package profile

import "testing"

func TestEventsAreRelayedWhereMessagesCanBeRefused(t *testing.T) {
	t.Parallel()
	const many = "name: a\nload: {rate: 100, duration: 20s, warmup: 5s, count_min: 2, count_max: 4}\n"
	const shaped = "name: a\nload: {rate: 100, duration: 25s, count_max: 4, shape: [{kind: steps, levels: [9, 1]}]}\n"
	for name, row := range map[string]struct {
		yaml string
		want bool
	}{
		"nothing can be refused of a stock that nobody exhausts": {sound, false},
		"a share of the messages is":                             {sound + "workers: {fail: {refused: 0.01}}\n", true},
		"a share of them is in a fault":                          {sound + "faults: [{kind: workers.fail, from: 1s, for: 1s, fail: {refused: 0.1}}]\n", true},
		"a fault of another kind refuses nothing":                {sound + "faults: [{kind: workers.fail, from: 1s, for: 1s, fail: {unknown: 1}}]\n", false},
		// 2,500 messages ask for at most 4 units each.
		"stock for every message of the warm-up and the load is enough": {many + "inbox: {initial_stock: 10000}\n", false},
		"one unit less is not":                            {many + "inbox: {initial_stock: 9999}\n", true},
		"a shape asks for as much as its peak":            {shaped + "inbox: {initial_stock: 89999}\n", true},
		"and for no more":                                 {shaped + "inbox: {initial_stock: 90000}\n", false},
		"a closed load that is short does not exhaust it": {"name: a\nload: {mode: closed, duration: 30s}\n", false},
		"one that is long may":                            {"name: a\nload: {mode: closed, duration: 300s}\n", true},
		"it may be asked for in any case":                 {sound + "inbox: {events: {relay: on}}\n", true},
		"and be turned off":                               {sound + "workers: {fail: {refused: 1}}\ninbox: {events: {relay: off}}\n", false},
		"without a database there are no events":          {sound + "workers: {fail: {refused: 1}}\ninbox: {strategy: none}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parseText(t, row.yaml).RelaysEvents(); got != row.want {
				t.Errorf("events are relayed: %v, want %v", got, row.want)
			}
		})
	}
}
