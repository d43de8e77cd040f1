package profile

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

func tiersRise(j *judge) {
	if n := len(j.Topology.Tiers); n > maxTiers {
		j.report("topology.tiers", "%d tiers; at most %d are possible", n, maxTiers)
	}
	tiers := j.Topology.Tiers
	if len(tiers) == 0 {
		j.report("topology.tiers", "is empty; a retry needs a tier to wait in")
	}
	for i := 1; i < len(tiers); i++ {
		if tiers[i] <= tiers[i-1] {
			j.report(fmt.Sprintf("topology.tiers.%d", i), "%s does not rise above the tier before it, %s",
				durationText(tiers[i]), durationText(tiers[i-1]))
		}
	}
}

// tiersLastAMillisecond holds because the broker counts TTLs in whole milliseconds, and one of 0 expires a message
// before any consumer can take it.
func tiersLastAMillisecond(j *judge) {
	for i, tier := range j.Topology.Tiers {
		if d := j.Topology.scaled(tier); d < time.Millisecond {
			j.report(fmt.Sprintf("topology.tiers.%d", i), "%s becomes %s after time_scale %v and jitter; the broker's least is 1ms",
				durationText(tier), d, j.Topology.TimeScale)
		}
	}
}

func deliveryLimitActs(j *judge) {
	if j.Topology.DeliveryLimit == 0 {
		j.report("topology.delivery_limit", "0 would take a message away at its first return; want 1 or more, or -1 for no limit")
	}
}

// noLosingCycle refuses work queue -> (delivery limit) -> tier -> (TTL) -> work queue: no step of it is a rejection, and
// the broker drops a message from such a cycle at once with at-most-once, and holds it for ever with at-least-once
// (run on RabbitMQ 3.10.8 and 4.3.6).
func noLosingCycle(j *judge) {
	if j.Topology.DeliveryLimitTo == "retry" {
		j.report("topology.delivery_limit_to", "retry makes a cycle that loses messages: the delivery limit and the tier's TTL "+
			"dead-letter back to the work queue without a rejection, and the broker drops what goes round; want parking")
	}
}

// somethingIsDeclared holds declare none and isolation predeclared together: a fresh virtual host or prefix is empty.
func somethingIsDeclared(j *judge) {
	none, predeclared := j.Topology.Declare == "none", j.Topology.Isolation == "predeclared"
	if none && !predeclared {
		j.report("topology.declare", "none leaves isolation %s without queues; set isolation to predeclared, or declare to policy or arguments", j.Topology.Isolation)
	}
	if predeclared && !none {
		j.report("topology.declare", "%s would change what isolation predeclared takes as it is; set declare to none", j.Topology.Declare)
	}
}

func policiesNeedManagement(j *judge) {
	if j.Topology.Declare == "policy" && j.Topology.Management != "full" {
		j.report("topology.declare", "policy needs the management API to set policies, but management is %s; set management to full, or declare to arguments", j.Topology.Management)
	}
}

func clustersNeedManagement(j *judge) {
	if j.Topology.Nodes > 1 && j.Topology.Management == "none" {
		j.report("topology.nodes", "only the management API says how many nodes there are, but management is none; set management to read or full")
	}
}

func vhostsNeedManagement(j *judge) {
	if j.Topology.Isolation == "vhost" && j.Topology.Management != "full" {
		j.report("topology.isolation", "vhost needs the management API to make a virtual host, but management is %s; set management to full, or isolation to prefix", j.Topology.Management)
	}
}

// faultsFit checks each fault by itself: inside the measured load, with shares exactly when its kind takes them.
func faultsFit(j *judge) {
	for i := range j.Faults {
		if path := fmt.Sprintf("faults.%d", i); j.sound(path) {
			j.faultFits(&j.Faults[i], path)
		}
	}
}

func (j *judge) faultFits(f *Fault, path string) {
	if end := f.From + f.For; j.sound("load.duration") && end > j.Load.Duration {
		j.report(path+".for", "the fault ends %s into the load, after the load's end at %s", durationText(end), durationText(j.Load.Duration))
	}
	kind, _ := faultKind(f.Kind)
	j.faultKeysFit(f, kind, path)
	if kind.Nodes > j.Topology.Nodes && j.sound("topology.nodes") {
		j.report(path+".kind", "%s needs a cluster; set topology.nodes to %d or more", f.Kind, kind.Nodes)
	}
	switch sum := f.Fail.sum(); {
	case kind.NeedsFail && sum == 0:
		j.report(path+".fail", "%s needs shares of calls that fail, such as fail: {transient: 0.5}", f.Kind)
	case sum > 1+shareTolerance:
		j.report(path+".fail", "the shares add up to %.4g; at most 1 is possible", sum)
	}
}

// faultKeysFit refuses keys that other kinds take. A default says nothing, since the effective profile writes every key out.
func (j *judge) faultKeysFit(f *Fault, kind FaultKind, path string) {
	given, usual := reflect.ValueOf(f).Elem(), reflect.ValueOf(defaultFault())
	for i := range given.NumField() {
		name := key(given.Type().Field(i))
		if !slices.Contains([]string{"kind", "from", "for"}, name) && !slices.Contains(kind.Takes, name) && !reflect.DeepEqual(given.Field(i).Interface(), usual.Field(i).Interface()) {
			j.report(path+"."+name, "has no meaning for %s", f.Kind)
		}
	}
}

// defaultFault returns a fault of no kind whose every key has its default, as the table of keys says.
func defaultFault() (f Fault) {
	newDecoder(place{}).section(&node{}, reflect.ValueOf(&f).Elem(), "faults.0")
	return f
}

// faultsDoNotOverlap refuses two faults of one kind at the same time: neither could be proved by its own mark.
func faultsDoNotOverlap(j *judge) {
	for i, a := range j.Faults {
		for k, b := range j.Faults[:i] {
			if !j.sound(fmt.Sprintf("faults.%d", i)) || !j.sound(fmt.Sprintf("faults.%d", k)) {
				continue
			}
			if a.Kind == b.Kind && a.Target == b.Target && a.From < b.From+b.For && b.From < a.From+a.For {
				j.report(fmt.Sprintf("faults.%d.from", i), "overlaps with item %d, which is also a %s", k, a.Kind)
			}
		}
	}
}

// maxTiers is as many as the ledger keeps ages of; three are usual.
const maxTiers = 16
