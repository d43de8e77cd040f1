package result

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"spillway/internal/profile"
)

// Summary writes a result as text that a person understands without the manual: the verdict first, then what came of
// the messages, then the measures, and last where the files are. It returns the error of w.
func Summary(w io.Writer, r *Result) error {
	s := &summary{r: r}
	s.verdict()
	s.findings()
	s.thresholds()
	s.account()
	s.rates()
	s.latencies()
	s.ages()
	s.storm()
	s.faults()
	s.signals()
	s.files()
	_, err := io.WriteString(w, s.text.String())
	return err
}

// summary gathers the text.
type summary struct {
	r    *Result
	text strings.Builder
}

// printf adds text. Texts from outside (names, labels, errors) come in as arguments and must go through plain.
func (s *summary) printf(format string, args ...any) { fmt.Fprintf(&s.text, format, args...) }

// plain makes a text from outside safe for a terminal and keeps it on one line.
func plain(text string) string { return profile.Printable(text) }

// section starts a part of the summary.
func (s *summary) section(title string) { s.printf("\n%s\n", title) }

func (s *summary) verdict() {
	r := s.r
	word := map[Verdict]string{Pass: "PASS", Fail: "FAIL", Invalid: "INVALID"}[r.Verdict]
	if word == "" {
		word = "NO VERDICT"
	}
	s.printf("%s  %s: %s\n", word, plain(orUnknown(r.Run.Name)), r.sentence())
	s.printf("      run %s, %s, seed %d, spillway %s\n", plain(orUnknown(r.Run.ID)),
		span(r.Run.FinishedAt.Sub(r.Run.StartedAt).Truncate(100*time.Millisecond).Seconds()), r.Run.Seed, plain(orUnknown(r.Run.Version)))
	s.printf("      %s %s, PostgreSQL %s, %d CPUs%s\n", plain(cmp.Or(r.Environment.Broker.Product, "broker")), plain(orUnknown(r.Environment.Broker.Version)),
		plain(orUnknown(r.Environment.Postgres.Version)), r.Environment.Host.CPUs, colocated(r.Environment.Colocated))
	if len(r.Run.Labels) > 0 {
		s.printf("      %s\n", labels(r.Run.Labels))
	}
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func colocated(yes bool) string {
	if yes {
		return ", all on one machine"
	}
	return ""
}

func labels(of map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, plain(name)+"="+plain(of[name]))
	}
	return strings.Join(out, " ")
}

// sentence says the most important thing about the account.
func (r *Result) sentence() string {
	m := &r.Messages
	var broken []string
	for _, v := range []struct {
		n    int64
		what string
	}{{m.Lost, "lost"}, {m.DuplicateEffects, "applied twice"}, {m.MissingEffects, "claimed without effect"}} {
		if v.n > 0 {
			broken = append(broken, whole(v.n)+" "+v.what)
		}
	}
	if len(broken) > 0 {
		return "of " + whole(m.Offered) + " messages, " + strings.Join(broken, ", ")
	}
	if m.NotAudited > 0 {
		return whole(m.NotAudited) + " of " + whole(m.Offered) + " messages could not be audited"
	}
	accounted := "every one of " + whole(m.Offered) + " messages is accounted for"
	switch missed := r.missed(); {
	case r.Verdict == Fail && missed > 0:
		return accounted + ", thresholds missed: " + whole(missed)
	case r.Verdict == Pass || r.Verdict == Fail:
		return accounted
	default:
		return "the measurement cannot be trusted"
	}
}

// missed counts the thresholds that were not met.
func (r *Result) missed() (n int64) {
	for _, t := range r.Thresholds {
		if !t.OK {
			n++
		}
	}
	return n
}

func (s *summary) findings() {
	if len(s.r.Findings) == 0 {
		return
	}
	s.section("Findings")
	rank := []Severity{Error, Warning, Info}
	sorted := slices.Clone(s.r.Findings)
	slices.SortStableFunc(sorted, func(a, b Finding) int { return slices.Index(rank, a.Severity) - slices.Index(rank, b.Severity) })
	for _, f := range sorted {
		s.printf("  %-8s %s (%s)\n", plain(string(f.Severity)), plain(f.Message), plain(f.Code))
	}
}

func (s *summary) thresholds() {
	if len(s.r.Thresholds) == 0 {
		return
	}
	s.section("Thresholds")
	for _, t := range s.r.Thresholds {
		word, observed := "missed", "no samples"
		if t.OK {
			word = "met"
		}
		if t.Observed != nil {
			observed = "observed " + observedText(t.Expression, *t.Observed)
		}
		s.printf("  %-8s %s, %s\n", word, plain(t.Expression), observed)
	}
}

// observedText writes an observed number in the unit of its path.
func observedText(expression string, x float64) string {
	path, _, _ := strings.Cut(strings.NewReplacer("<", "=", ">", "=").Replace(expression), "=")
	if strings.Contains(path, "_seconds") && !strings.HasSuffix(strings.TrimSpace(path), ".count") {
		return span(x)
	}
	return number3(x)
}

func (s *summary) files() {
	if s.r.Dir == "" {
		return
	}
	s.section("Files")
	s.printf("  %s\n", plain(s.r.Dir))
	if len(s.r.Files) > 0 {
		s.printf("  %s\n", plain(strings.Join(s.r.Files, "  ")))
	}
}
