package result

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// account shows what came of the messages. Rows of zeros are left out, except those that must be seen to be zero.
func (s *summary) account() {
	m := &s.r.Messages
	s.section("Account                        messages")
	s.row(0, "offered", m.Offered, true)
	s.row(1, "confirmed by the broker", m.Confirmed, true)
	s.row(1, "returned, no queue bound", m.Returned, false)
	s.row(1, "nacked by the broker", m.Nacked, false)
	s.row(1, "unknown, no answer came", m.Unknown, false)
	s.row(1, "shed, never sent", m.Shed, true)
	s.row(1, "waiting in the outbox", m.OutboxPending, false)
	s.printf("  came to\n")
	s.row(1, "applied to the database", m.Applied, true)
	s.row(1, "refused by the business", m.Refused, false)
	s.row(1, "parked", m.Parked, true)
	for _, reason := range slices.Sorted(maps.Keys(m.ParkedByReason)) {
		if m.ParkedByReason[reason] == 0 {
			continue // results list every reason there is
		}
		s.row(2, reason, m.ParkedByReason[reason], false)
	}
	s.row(1, "still queued at the end", m.QueuedAtEnd, true)
	s.row(1, "expired in parking", m.Expired, false)
	s.row(1, "lost", m.Lost, true)
	s.row(1, "not audited, perhaps lost", m.NotAudited, false)
	s.row(0, "duplicate effects", m.DuplicateEffects, true)
	s.row(0, "missing effects", m.MissingEffects, true)
	s.row(0, "in two places", m.Overlaps, false)
	if m.OrderViolations != nil {
		s.row(0, "out of order", *m.OrderViolations, true)
	}
	if e := s.r.Inbox.Events; e != nil && e.Refused+e.Rows+e.Distinct > 0 {
		s.printf("  %s refusals, %s events of them written, %s at the broker (%s copies besides)\n",
			whole(e.Refused), whole(e.Rows), whole(e.Distinct), whole(e.Duplicates))
	}
	if f := s.r.Inbox.Retention; f != nil {
		s.printf("  %s claims forgotten in %s purges, the longest %s\n", whole(f.Claims), whole(f.Purges), span(f.LongestSeconds))
	}
	s.printf("  %s publishes (%s again), %s deliveries (%s again), %s duplicates absorbed, %s retries\n",
		whole(m.Publishes), whole(m.Republished), whole(m.Delivered), whole(m.Redelivered), whole(m.DuplicateDeliveries), whole(m.RetriesScheduled))
}

// row writes one line of the account, indented by depth.
func (s *summary) row(depth int, name string, n int64, always bool) {
	if n != 0 || always {
		s.printf("  %-27s%10s\n", strings.Repeat("  ", depth)+plain(name), whole(n))
	}
}

func (s *summary) rates() {
	r := &s.r.Rates
	s.section("Rates under load (messages/s)")
	s.printf("  offered %s   confirmed %s   delivered %s   applied %s   acked %s   parked %s\n",
		rate(r.Offered), rate(r.Confirmed), rate(r.Delivered), rate(r.Applied), rate(r.Acked), rate(r.Parked))
}

func (s *summary) latencies() {
	l := &s.r.Latency
	t := table{head: []string{"Latency", "p50", "p99", "p99.9", "max", "samples"}}
	for _, row := range []struct {
		name string
		of   *Latency
	}{
		{"confirm (from sending)", l.Confirm},
		{"acceptance (from due)", l.Acceptance},
		{"acceptance (from sending)", l.AcceptanceUncorrected},
		{"sojourn (from due)", l.Sojourn},
		{"sojourn (from sending)", l.SojournUncorrected},
		{"service", l.Service},
		{"schedule lag", l.ScheduleLag},
		{"relay lag", l.RelayLag},
		{"tier delay error", l.DelayError},
	} {
		if row.of != nil {
			t.add(row.name, span(row.of.P50), span(row.of.P99), span(row.of.P999), span(row.of.Max), whole(row.of.Count))
		}
	}
	s.table(t, "no samples")
}

func (s *summary) ages() {
	a := &s.r.OldestAge
	t := table{head: []string{"Oldest message", "p50", "p99", "max", "end"}}
	add := func(name string, of *Age) {
		if of != nil {
			t.add(name, span(of.P50), span(of.P99), span(of.Max), span(of.End))
		}
	}
	add("in the work queue", a.Work)
	add("in the retry tiers", a.Retry)
	for _, tier := range slices.SortedFunc(maps.Keys(a.Tiers), byDelay) {
		add("  tier "+tier, a.Tiers[tier])
	}
	add("in parking", a.Parking)
	add("unsettled anywhere", a.Unsettled)
	s.table(t, "no samples")
}

// byDelay orders tiers, whose names are their nominal delays.
func byDelay(a, b string) int {
	x, _ := time.ParseDuration(a)
	y, _ := time.ParseDuration(b)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}

// storm shows the run's worst fault window. Numbers that were not taken are left out.
func (s *summary) storm() {
	st := &s.r.RetryStorm
	if *st == (Storm{}) {
		return
	}
	s.section("Retry storm: " + stormOutcome(st))
	for _, row := range []struct {
		name string
		x    *float64
	}{
		{"deliveries per message", st.Amplification},
		{"arrivals/s before", st.BaselinePerSecond},
		{"peak returns/s", st.PeakReturnsPerSecond},
		{"peak over mean", st.Synchronisation},
		{"most messages in tiers", st.DebtMax},
		{"messages above capacity", st.AreaMessages},
	} {
		if row.x != nil {
			s.printf("  %-27s%10s\n", row.name, number3(*row.x))
		}
	}
}

// stormOutcome puts outcome and recovery into words.
func stormOutcome(st *Storm) string {
	text := plain(st.Outcome)
	if text == "" {
		text = "no fault"
	}
	if st.RecoverySeconds != nil {
		text += " after " + span(*st.RecoverySeconds)
	}
	return text
}

func (s *summary) faults() {
	if len(s.r.Faults) == 0 {
		return
	}
	s.section("Faults")
	for _, f := range s.r.Faults {
		s.printf("  %s from %s to %s: %s\n", plain(f.Kind), span(f.StartSeconds), span(f.EndSeconds), evidence(f.Evidence))
		if f.Storm != nil && len(s.r.Faults) > 1 { // a single one is the storm shown above
			s.printf("    %s, %s deliveries per message\n", stormOutcome(f.Storm), rate(f.Storm.Amplification))
		}
	}
}

func evidence(of map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		text := number3(of[name])
		if strings.HasSuffix(name, "_seconds") {
			text = span(of[name])
		}
		parts = append(parts, plain(name)+" "+text)
	}
	if len(parts) == 0 {
		return "left no mark"
	}
	return strings.Join(parts, ", ")
}

// signals shows only what happened.
func (s *summary) signals() {
	g := &s.r.Signals
	var parts []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{g.Reconnects, "reconnects"}, {g.ConsumerCancels, "consumer cancels"}, {g.BreakerOpens, "breaker openings"},
		{g.CatchUp.Late, "late arrivals"}, {g.CatchUp.Bursts, "bursts"},
	} {
		if c.n > 0 {
			parts = append(parts, whole(c.n)+" "+c.what)
		}
	}
	for _, d := range []struct {
		x    *float64
		what string
	}{{g.BlockedSeconds, "blocked"}, {g.BreakerOpenSeconds, "with the breaker open"}, {g.PoolWaitSeconds, "waiting for database connections"}} {
		if d.x != nil && *d.x >= 0.001 {
			parts = append(parts, span(*d.x)+" "+d.what)
		}
	}
	if len(parts) > 0 {
		s.section("Signals")
		s.printf("  %s\n", strings.Join(parts, ", "))
	}
}
