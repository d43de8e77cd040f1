package experiment

import (
	"context"
	"strings"
	"time"

	"spillway/internal/fault"
	"spillway/internal/profile"
)

// networkFaults starts the names of the faults of the network.
const networkFaults = "network."

// link returns a way to a server that can be made worse, if a fault of the profile asks for it; nil when none does.
func (r *run) link(target string) *fault.Link {
	for _, f := range r.o.Profile.Faults {
		if strings.HasPrefix(f.Kind, networkFaults) && f.Target == target {
			return fault.NewLink()
		}
	}
	return nil
}

// slowAnswer is from when on an answer is slow where the fault has no delay of its own: several times what one takes
// otherwise.
const slowAnswer = 100 * time.Millisecond

func (r *run) networkFault(f profile.Fault) fault.Fault {
	link, ping := r.brokerLink, r.pingBroker
	if f.Target == profile.TargetDatabase {
		link, ping = r.databaseLink, r.db.Ping
	}
	h := &fault.Held{Name: f.Kind, Ping: ping}
	var worse fault.Worse
	switch f.Kind {
	case fault.KindDelay:
		worse.Delay, h.Counts = f.Delay, r.slowMarks(f.Target, f.Delay)
	case fault.KindJitter:
		worse.Delay, worse.Jitter, h.Counts = f.Delay, f.Delay, r.slowMarks(f.Target, f.Delay)
	case fault.KindBandwidth:
		worse.Bandwidth, h.Counts = f.Bandwidth, r.slowMarks(f.Target, slowAnswer)
	default:
		worse.Reset, h.Counts = true, r.silenceMarks
		if f.Target == profile.TargetDatabase {
			h.Counts = r.databaseMarks
		}
	}
	h.Hold = func(ctx context.Context) (func(context.Context) error, error) { return link.Hold(ctx, f.Kind, worse) }
	return h
}

// slowMarks counts the answers of a target that take longer than a bound.
func (r *run) slowMarks(target string, bound time.Duration) func() []fault.Mark {
	count := &slow{bound: bound}
	if target == profile.TargetDatabase {
		r.slowness.handlers = append(r.slowness.handlers, count)
	} else {
		r.slowness.confirms = append(r.slowness.confirms, count)
	}
	return func() []fault.Mark { return []fault.Mark{{Name: "slow_answers", Value: float64(count.n.Load())}} }
}
