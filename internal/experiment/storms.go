package experiment

import (
	"time"

	"spillway/internal/fault"
	"spillway/internal/result"
	"spillway/internal/storm"
)

// storms measures each fault window, and returns the worst for the run: the one with the largest area, then the longest
// recovery. Amplification is the run's own, with or without a fault.
func (r *run) storms(m result.Messages) ([]result.Fault, result.Storm) {
	worst := result.Storm{Amplification: r.amplification(m)}
	faults := []result.Fault{}
	series := r.storm.Series()
	var worstArea, worstRecovery float64 = -1, -1
	for _, w := range r.timeline.Windows() {
		s := r.stormOf(series, w)
		faults = append(faults, faultResult(w, &s))
		area, recovery := *s.AreaMessages, orInfinite(s.RecoverySeconds)
		if area > worstArea || (area == worstArea && recovery > worstRecovery) {
			worstArea, worstRecovery, worst = area, recovery, s
		}
	}
	if len(faults) == 0 {
		worst.DebtMax = result.Number(float64(debtMax(series)))
	}
	return faults, worst
}

// never stands for a recovery that did not come, when recoveries are compared.
const never = 1e18

func orInfinite(x *float64) float64 {
	if x == nil {
		return never
	}
	return *x
}

func (r *run) stormOf(series storm.Series, w fault.Window) result.Storm {
	s := storm.Analyse(series, storm.Window{
		Start: w.Start, End: w.End, LoadStart: leadTime, LoadEnd: r.offeredUntil, RunEnd: r.drainEnd(), Drained: r.drained,
	})
	out := result.Storm{
		Amplification: r.amplification(r.messages()), BaselinePerSecond: result.Number(s.BaselinePerSecond),
		PeakReturnsPerSecond: result.Number(s.PeakReturnsPerSecond), Synchronisation: result.Number(s.Synchronisation),
		DebtMax: result.Number(float64(s.DebtMax)), AreaMessages: result.Number(s.AreaMessages), Outcome: string(s.Outcome),
	}
	if s.Outcome == storm.Stable || s.Outcome == storm.Recovered {
		out.RecoverySeconds = result.Seconds(s.Recovery)
	}
	return out
}

// drainEnd is the last instant at which the path was watched.
func (r *run) drainEnd() time.Duration {
	for _, p := range r.phases {
		if p.name == PhaseDrain {
			return p.end
		}
	}
	return r.offeredUntil
}

// amplification is deliveries per distinct message delivered; nil when none was.
func (r *run) amplification(m result.Messages) *float64 {
	if distinct := r.ledger.Counts().Distinct; distinct > 0 {
		return result.Number(float64(m.Delivered) / float64(distinct))
	}
	return nil
}

func faultResult(w fault.Window, s *result.Storm) result.Fault {
	out := result.Fault{
		Kind: w.Kind, StartSeconds: w.Start.Seconds(), EndSeconds: w.End.Seconds(), Evidence: map[string]float64{}, Storm: s,
	}
	for _, m := range w.Evidence {
		out.Evidence[m.Name] = m.Value
	}
	return out
}

func debtMax(s storm.Series) (most int) {
	for _, sample := range s.Samples {
		most = max(most, sample.Debt)
	}
	return most
}
