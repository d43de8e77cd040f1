package redrive

import (
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
)

func TestAFilterChoosesByAllThatItSays(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	d := &broker.Delivery{
		MessageID: "a", Type: "order.placed",
		Headers: envelope.Headers{Failure: envelope.Failure{Class: "transient", FirstFailedAt: now.Add(-time.Hour).UnixMicro()}},
	}
	for name, row := range map[string]struct {
		filter Filter
		want   bool
	}{
		"nothing said chooses all":          {Filter{}, true},
		"the type":                          {Filter{Types: []string{"x", "order.placed"}}, true},
		"another type":                      {Filter{Types: []string{"x"}}, false},
		"the class":                         {Filter{ErrorClasses: []string{"transient"}}, true},
		"another class":                     {Filter{ErrorClasses: []string{"permanent"}}, false},
		"the id":                            {Filter{IDs: []string{"b", "a"}}, true},
		"another id":                        {Filter{IDs: []string{"b"}}, false},
		"older than it is young":            {Filter{OlderThan: 59 * time.Minute}, true},
		"not older than its age":            {Filter{OlderThan: time.Hour}, false},
		"younger than it is old":            {Filter{YoungerThan: 61 * time.Minute}, true},
		"not younger than its age":          {Filter{YoungerThan: time.Hour}, false},
		"one kind right and another wrong":  {Filter{Types: []string{"order.placed"}, IDs: []string{"b"}}, false},
		"between two ages, and of its kind": {Filter{Types: []string{"order.placed"}, OlderThan: time.Minute, YoungerThan: 2 * time.Hour}, true},
	} {
		if got := row.filter.Matches(d, now); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheAgeOfAMessageThatTheBrokerParkedIsFromWhenItWasDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := Filter{OlderThan: time.Minute}
	due := &broker.Delivery{Headers: envelope.Headers{ScheduledAt: now.Add(-2 * time.Minute).UnixMicro()}}
	foreign := &broker.Delivery{Timestamp: now.Add(-2 * time.Minute)}
	fresh := &broker.Delivery{Timestamp: now}
	if !f.Matches(due, now) || !f.Matches(foreign, now) || f.Matches(fresh, now) {
		t.Error("by the due instant, or the timestamp of a foreign message, both are two minutes old")
	}
}
