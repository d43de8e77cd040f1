package profile

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// A rule is about several keys at once. It runs when the keys that it reads have no problem of their own.
type rule struct {
	reads []string
	check func(*judge)
}

// rules returns every rule over several keys. Simple ranges are in the table, and so is "not above another key".
func rules() []rule {
	return []rule{
		{[]string{"load.mode", "load.rate", "load.shape"}, openHasARate},
		{[]string{"load.mode", "load.rate", "load.duration", "load.warmup"}, offersMessages},
		{[]string{"load.mode", "load.shape", "load.arrivals", "publish.mode"}, closedHasNoSchedule},
		{[]string{"load.shape", "load.arrivals"}, shapeFits},
		{[]string{"load.sizes"}, sizesFit},
		{[]string{"load.bad"}, badSharesFit},
		{[]string{"workers.fail"}, failSharesFit},
		{[]string{"workers.service"}, serviceFits},
		{[]string{"topology.tiers"}, tiersRise},
		{[]string{"topology.tiers", "topology.time_scale", "topology.jitter"}, tiersLastAMillisecond},
		{[]string{"topology.delivery_limit"}, deliveryLimitActs},
		{[]string{"topology.delivery_limit_to"}, noLosingCycle},
		{[]string{"topology.isolation", "topology.declare"}, somethingIsDeclared},
		{[]string{"topology.declare", "topology.management"}, policiesNeedManagement},
		{[]string{"topology.isolation", "topology.management"}, vhostsNeedManagement},
		{[]string{"inbox.strategy", "publish.mode"}, publishingNeedsDatabase},
		{[]string{"inbox.strategy"}, faultsNeedDatabase},
		{[]string{"inbox.strategy", "workers.ack"}, ackFits},
		{[]string{"inbox.strategy", "workers.processes"}, processesFit},
		{[]string{"inbox.retention", "retry.max_age", "topology.parking_retention"}, retentionSuffices},
		{[]string{"inbox.retention"}, partitionsStayFew},
		{[]string{"topology.nodes", "topology.management"}, clustersNeedManagement},
		{[]string{"topology.strategy", "workers.ack"}, returnsNeedADelivery},
		{[]string{"topology.strategy", "faults"}, faultsNeedTiers},
		{nil, faultsFit},
		{nil, faultsDoNotOverlap},
		{nil, thresholdsParse},
		{nil, keysHaveMeaning},
		{nil, retryKeysHaveMeaning},
	}
}

// judge is what a rule sees: the profile, which keys are sound, and where to report.
type judge struct {
	*Profile
	d *decoder
}

// sound reports whether neither the key, nor one above or below it, has a problem already.
func (j *judge) sound(path string) bool {
	for broken := range j.d.broken {
		if broken == path || broken == "" || strings.HasPrefix(broken, path+".") || strings.HasPrefix(path, broken+".") {
			return false
		}
	}
	return true
}

// report places a problem at a key, or at the nearest key above it that was written.
func (j *judge) report(path, format string, args ...any) {
	at := j.d.root
	for p := path; p != ""; p = p[:max(0, strings.LastIndexByte(p, '.'))] {
		if given, ok := j.d.given[p]; ok {
			at = given
			break
		}
	}
	j.d.problems = append(j.d.problems, Problem{File: at.file, Line: at.line, Column: at.column, Path: path,
		Message: fmt.Sprintf(format, args...)})
}

// validate runs the rules over a decoded profile.
func (d *decoder) validate(p *Profile, checks []Check) {
	j := &judge{Profile: p, d: d}
	for _, f := range table {
		j.bounded(f)
	}
	for _, r := range rules() {
		sound := true
		for _, path := range r.reads {
			sound = sound && j.sound(path)
		}
		if sound {
			r.check(j)
		}
	}
	for _, check := range checks {
		check(p, func(path, message string) {
			if j.sound(path) {
				j.report(path, "%s", message)
			}
		})
	}
}

// bounded checks one row's bounds by another key, naming both values.
func (j *judge) bounded(f Field) {
	for _, b := range []struct {
		other, words string
		breached     func(mine, other int64) bool
	}{
		{f.AtMost, "above", func(mine, other int64) bool { return mine > other }},
		{f.AtLeast, "below", func(mine, other int64) bool { return mine < other }},
	} {
		if b.other == "" || !j.sound(f.Path) || !j.sound(b.other) {
			continue
		}
		mine, other := at(j.Profile, f.Path), at(j.Profile, b.other)
		if b.breached(mine.Int(), other.Int()) {
			j.report(f.Path, "%v is %s %s, which is %v", mine.Interface(), b.words, b.other, other.Interface())
		}
	}
}

// clampDefaults lowers and raises defaults that another key bounds: a prefetch of 1 alone is a sound profile.
func (d *decoder) clampDefaults(p *Profile) {
	for _, f := range table {
		if _, written := d.given[f.Path]; written {
			continue
		}
		if f.AtMost != "" {
			v := at(p, f.Path)
			v.SetInt(min(v.Int(), max(1, at(p, f.AtMost).Int())))
		}
		if f.AtLeast != "" {
			v := at(p, f.Path)
			v.SetInt(max(v.Int(), at(p, f.AtLeast).Int()))
		}
	}
}

// at returns the struct field of a path without lists.
func at(p *Profile, path string) reflect.Value {
	v := reflect.ValueOf(p).Elem()
	for _, part := range strings.Split(path, ".") {
		i, _ := member(v.Type(), part)
		v = v.Field(i)
	}
	return v
}

func openHasARate(j *judge) {
	if !j.Load.Closed() && !j.Load.ReplaysOnly() && j.Load.Rate == 0 {
		j.report("load.rate", "is required, above 0, unless load.mode is closed or every part of load.shape is a replay")
	}
}

func offersMessages(j *judge) {
	if j.Load.Closed() || j.Load.Rate == 0 { // the latter is openHasARate's, or a replay's
		return
	}
	total := math.Floor(j.Load.Rate * (j.Load.Warmup + j.Load.Duration).Seconds())
	if total < 1 {
		j.report("load.rate", "%v messages/s over %s offer no message at all", j.Load.Rate, durationText(j.Load.Warmup+j.Load.Duration))
	}
	if total > maxOffered {
		j.report("load.rate", "%v messages/s over %s offer more messages than one run accounts for (2^30)", j.Load.Rate, durationText(j.Load.Warmup+j.Load.Duration))
	}
}

// maxOffered is as many as the ledger of one run keeps a state of.
const maxOffered = 1 << 30

func badSharesFit(j *judge) {
	sum, first := 0.0, map[string]int{}
	for i, bad := range j.Load.Bad {
		sum += bad.Share
		if before, twice := first[bad.Kind]; twice {
			j.report(fmt.Sprintf("load.bad.%d.kind", i), "%q is there already, as item %d", bad.Kind, before)
		}
		first[bad.Kind] = i
	}
	if sum > 1+shareTolerance {
		j.report("load.bad", "the shares add up to %.4g; at most 1 is possible", sum)
	}
}

// shareTolerance allows for ten shares of 0.1, whose sum in floating point may be above 1.
const shareTolerance = 1e-9

func failSharesFit(j *judge) {
	if sum := j.Workers.Fail.sum(); sum > 1+shareTolerance {
		j.report("workers.fail", "the shares add up to %.4g; at most 1 is possible", sum)
	}
}

func (f Fail) sum() float64 { return f.Transient + f.Permanent + f.Refused + f.Dies + f.Unknown }

func serviceFits(j *judge) {
	s := j.Workers.Service
	uniform := s.Distribution == "uniform"
	switch {
	case uniform && s.Max == 0:
		j.report("workers.service.max", "is required for the distribution uniform")
	case uniform && s.Mean != 0:
		j.report("workers.service.mean", "has no meaning with the distribution uniform; set min and max")
	case !uniform && (s.Min != 0 || s.Max != 0):
		j.report("workers.service", "min and max have no meaning with the distribution %s; set mean", s.Distribution)
	case s.Distribution != "fixed" && !uniform && s.Mean == 0:
		j.report("workers.service.mean", "is required for the distribution %s", s.Distribution)
	}
}

func thresholdsParse(j *judge) {
	for i, text := range j.Thresholds {
		path := fmt.Sprintf("thresholds.%d", i)
		if !j.sound(path) {
			continue
		}
		if _, err := ParseThreshold(text); err != nil {
			j.report(path, "%v", err)
		}
	}
}

// scaled returns the shortest time that a message spends in a tier: after time scale, and in its first sub-tier.
func (t *Topology) scaled(tier time.Duration) time.Duration {
	d := float64(tier) * t.TimeScale
	if t.Jitter {
		d *= 0.8
	}
	return time.Duration(d)
}
