package profile

import "math"

// Values of inbox.events.relay that the rules look at.
const (
	eventsOn  = "on"
	eventsOff = "off"
)

// RelaysEvents reports whether a run of the profile publishes the outgoing events of refusals.
func (p *Profile) RelaysEvents() bool {
	switch p.Inbox.Events.Relay {
	case eventsOn:
		return p.NeedsDatabase()
	case eventsOff:
		return false
	default:
		return p.NeedsDatabase() && p.CanRefuse()
	}
}

// CanRefuse reports whether messages can end in a business refusal: because a share of them is to, or because the load may
// ask for more of one SKU than there is of it. It errs on the side of yes.
func (p *Profile) CanRefuse() bool {
	if p.Workers.Fail.Refused > 0 {
		return true
	}
	for _, f := range p.Faults {
		if f.Fail.Refused > 0 {
			return true
		}
	}
	return float64(p.Inbox.InitialStock) < p.Load.offeredAtMost()*float64(p.Load.CountMax)
}

// closedRateAtMost is more messages a second than any one process has ever brought to a broker. It bounds what a closed load,
// which has no rate, can ask for.
const closedRateAtMost = 1_000_000

// offeredAtMost returns a number of messages that the load does not exceed.
func (l *Load) offeredAtMost() float64 {
	span := (l.Warmup + l.Duration).Seconds()
	if l.Closed() {
		return min(closedRateAtMost*span, maxOffered)
	}
	peak := 1.0
	for i := range l.Shape {
		peak = max(peak, l.Shape[i].peak())
	}
	return math.Ceil(l.Rate * peak * span)
}

// peak returns the highest level of the part.
func (p *ShapePart) peak() float64 {
	highest := max(p.Level+p.Amplitude, p.From, p.To, p.Peak)
	for _, level := range p.Levels {
		highest = max(highest, level)
	}
	return highest
}

// refusing says why the profile refuses or not, as part of a sentence.
func (p *Profile) refusing() string {
	if p.CanRefuse() {
		return "the profile can refuse"
	}
	return "nothing in the profile can be refused"
}
