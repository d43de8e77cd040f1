package profile

import "fmt"

// shapeFits checks each part of the load's shape, and that the whole offers something.
func shapeFits(j *judge) {
	offers := len(j.Load.Shape) == 0
	for i, part := range j.Load.Shape {
		at := func(key string) string { return fmt.Sprintf("load.shape.%d.%s", i, key) }
		switch part.Kind {
		case "steps":
			if len(part.Levels) == 0 {
				j.report(at("levels"), "is required for steps")
			}
		case "spike":
			if part.At+part.Width > 1 {
				j.report(at("width"), "the spike begins at %v and is %v long: it ends after its part", part.At, part.Width)
			}
		case "sine":
			if part.Amplitude > part.Level {
				j.report(at("amplitude"), "%v is above the level, which is %v: the rate would be negative", part.Amplitude, part.Level)
			}
		case PartReplay:
			j.replayFits(&part, at)
		}
		if part.File != "" && part.Kind != PartReplay {
			j.report(at("file"), "has no meaning for %s", part.Kind)
		}
		offers = offers || part.offers()
	}
	if !offers {
		j.report("load.shape", "every part has the level 0: no message is offered")
	}
}

func (j *judge) replayFits(p *ShapePart, at func(key string) string) {
	if p.File == "" {
		j.report(at("file"), "is required for replay: a CSV file whose first column is the arrival times")
	}
	if j.Load.Arrivals != "constant" {
		j.report("load.arrivals", "%s has no meaning with a replay, whose file says when each message is due", j.Load.Arrivals)
	}
}

// offers reports whether the part has a level above 0 anywhere.
func (p *ShapePart) offers() bool {
	switch p.Kind {
	case "ramp":
		return p.From > 0 || p.To > 0
	case "steps":
		for _, level := range p.Levels {
			if level > 0 {
				return true
			}
		}
		return false
	case "spike":
		return p.Level > 0 || p.Peak > 0 && p.Width > 0
	case PartReplay: // the file tells
		return true
	default:
		return p.Level > 0
	}
}

// sizesFit checks that a list of sizes is there exactly when it is asked for.
func sizesFit(j *judge) {
	s := j.Load.Sizes
	if s.Distribution == "list" && len(s.List) == 0 {
		j.report("load.sizes.list", "is required for the distribution list")
	}
	if s.Distribution != "list" && len(s.List) > 0 {
		j.report("load.sizes.list", "has no meaning with the distribution %s", s.Distribution)
	}
}

// keysHaveMeaning refuses values that do nothing with the rest: who sets one expects something of it. A default says
// nothing, since the effective profile writes every key out.
func keysHaveMeaning(j *judge) {
	l, mode := &j.Load, j.Publish.Mode
	j.refuseVain([]vain{
		{"load.size", l.Size != 512 && l.Sizes.Distribution != "fixed", "load.sizes.distribution is " + l.Sizes.Distribution + ", and only fixed takes it"},
		{"load.publishers", l.Publishers != 1 && mode != "direct", "publish.mode is " + mode + ", and only direct has publishers of its own"},
		{"load.sku_draw.exponent", l.SKUDraw.Exponent != 1 && l.SKUDraw.Distribution != "zipf", "the distribution is " + l.SKUDraw.Distribution + ", and only zipf has one"},
		{"inbox.events.relay", j.Inbox.Events.Relay == eventsOn && !j.NeedsDatabase(), "inbox.strategy is none, so nothing is refused"},
		{"inbox.events.kill_share", j.Inbox.Events.KillShare > 0 && !j.RelaysEvents(), "no relay runs: inbox.events.relay is " + j.Inbox.Events.Relay + ", and " + j.refusing()},
		{"inbox.retention.policy", j.Inbox.Retention.Policy != RetainAll && !j.NeedsDatabase(), "inbox.strategy is none, so there is no inbox"},
		{"publish.replay.share", j.Publish.Replay.Share > 0 && mode != "direct", "publish.mode is " + mode + ", and only direct replays"},
		{"publish.kill_share", j.Publish.KillShare > 0 && mode == "direct", "publish.mode is direct, which has no two steps to die between"},
	})
}

// vain is a key that does nothing where vain is true.
type vain struct {
	key    string
	vain   bool
	reason string
}

func (j *judge) refuseVain(rows []vain) {
	for _, m := range rows {
		if m.vain && j.sound(m.key) {
			j.report(m.key, "does nothing here: %s", m.reason)
		}
	}
}

// closedHasNoSchedule refuses what would shape a schedule, and ways of publishing that do not keep a window of their own.
func closedHasNoSchedule(j *judge) {
	if !j.Load.Closed() {
		return
	}
	if len(j.Load.Shape) > 0 {
		j.report("load.shape", "has no meaning with load.mode closed, which has no schedule")
	}
	if j.Load.Arrivals != "constant" {
		j.report("load.arrivals", "%s has no meaning with load.mode closed, which has no schedule", j.Load.Arrivals)
	}
	if j.Publish.Mode != "direct" {
		j.report("publish.mode", "%s has no window to keep full; with load.mode closed want direct", j.Publish.Mode)
	}
}
