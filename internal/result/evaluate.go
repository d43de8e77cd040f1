package result

import (
	"fmt"

	"spillway/internal/profile"
)

// Evaluate holds thresholds against a result, in their order. A path that has no samples, or that no result has, fails:
// no data is never a pass.
func Evaluate(thresholds []profile.Threshold, r *Result) []ThresholdOutcome {
	out := make([]ThresholdOutcome, len(thresholds))
	for i, t := range thresholds {
		out[i].Expression = t.Text
		value, ok, err := r.Lookup(t.Path)
		if err != nil || !ok {
			continue
		}
		out[i].Observed = Number(value)
		out[i].OK = t.Holds(value)
	}
	return out
}

// CheckThresholds is a profile.Check: it reports thresholds whose paths no result has, before a run is spent on them.
func CheckThresholds(p *profile.Profile, report func(path, message string)) {
	for i, text := range p.Thresholds {
		t, err := profile.ParseThreshold(text)
		if err != nil {
			continue // reported by the profile's own rules
		}
		if err := CheckPath(t.Path); err != nil {
			report(fmt.Sprintf("thresholds.%d", i), err.Error())
		}
	}
}
