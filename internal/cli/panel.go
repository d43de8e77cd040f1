package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"spillway/internal/experiment"
)

// panel shows a run while it goes on: on a terminal a few lines that are drawn anew each second, in a pipe one line a
// second. As a Writer it takes the run's words, a line each. It is safe for concurrent use.
//
// One goroutine writes. Nobody else waits for the output: a reader that stalls (a full pipe, Ctrl-S) must hold up neither
// the probe nor a fault. Words that find no room are left out and counted; of the states only the latest is kept.
type panel struct {
	out      io.Writer
	terminal bool
	quiet    bool

	words    chan string              // room for all that a run says while its reader pauses for a minute
	states   chan experiment.Progress // room for the latest
	dropped  atomic.Int64
	stopOnce sync.Once
	stop     chan struct{}
	done     chan struct{}

	drawn int      // lines of the panel on the screen; the goroutine owns it and the next
	last  []string // the panel
}

// wordsBuffer is some lines more than a run with a fault says, and a minute of lines in a pipe.
const wordsBuffer = 256

func (a *app) newPanel(quiet bool) *panel {
	p := &panel{
		out: a.stdout, terminal: isTerminal(a.stdout), quiet: quiet, words: make(chan string, wordsBuffer),
		states: make(chan experiment.Progress, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go p.run()
	return p
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Write implements io.Writer for lines of words; the panel, if one is drawn, stays below them. It never blocks.
func (p *panel) Write(line []byte) (int, error) {
	if !p.quiet {
		select {
		case p.words <- string(line):
		default:
			p.dropped.Add(1)
		}
	}
	return len(line), nil
}

func (p *panel) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// show takes the state of the run, once a second. It never blocks.
func (p *panel) show(s experiment.Progress) {
	if p.quiet {
		return
	}
	select {
	case <-p.states: // an older one that nobody has read
	default:
	}
	select {
	case p.states <- s:
	default: // another caller's is as good
	}
}

// close writes what is left and leaves the screen to what comes next.
func (p *panel) close() {
	p.stopOnce.Do(func() { close(p.stop) })
	<-p.done
}

func (p *panel) run() {
	defer close(p.done)
	for {
		select {
		case words := <-p.words:
			p.write(words)
		case s := <-p.states:
			p.state(s)
		case <-p.stop:
			p.finish()
			return
		}
	}
}

// finish writes the words that are left.
func (p *panel) finish() {
	p.erase()
	p.last = nil
	for len(p.words) > 0 {
		p.write(<-p.words)
	}
	if n := p.dropped.Load(); n > 0 {
		p.write(fmt.Sprintf("%d lines were left out: nobody read them in time\n", n))
	}
}

func (p *panel) write(words string) {
	p.erase()
	_, _ = io.WriteString(p.out, words) // a screen that is gone ends with the run
	p.draw()
}

func (p *panel) state(s experiment.Progress) {
	if !p.terminal {
		p.write(line(s) + "\n")
		return
	}
	p.erase()
	p.last = lines(s)
	p.draw()
}

// erase takes the drawn panel off the screen: up, and clear to the end (ECMA-48 CUU and ED).
func (p *panel) erase() {
	if p.drawn > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

func (p *panel) draw() {
	if len(p.last) == 0 {
		return
	}
	var b bytes.Buffer
	for _, l := range p.last {
		b.WriteString(l + "\n")
	}
	_, _ = p.out.Write(b.Bytes()) // a screen that is gone ends with the run
	p.drawn = len(p.last)
}

// line is the state of a run in a pipe.
func line(s experiment.Progress) string {
	per := rates(s)
	text := fmt.Sprintf("%6.1fs %-7s offered %s/s confirmed %s/s applied %s/s | oldest %s backlog %d retry %d | parked %d",
		s.Elapsed.Seconds(), s.Phase, per.offered, per.confirmed, per.applied,
		short(s.View.Unsettled), s.View.Backlog, s.View.RetryDebt, s.Counts.Parked)
	if s.Breaker != "closed" {
		text += " | breaker " + s.Breaker
	}
	if len(s.Faults) > 0 {
		text += " | fault " + strings.Join(s.Faults, "+")
	}
	return text
}

// lines are the panel of a terminal.
func lines(s experiment.Progress) []string {
	per := rates(s)
	return []string{
		bar(s),
		fmt.Sprintf("  offered   %8s/s   confirmed %8s/s   delivered %8s/s   applied %8s/s", per.offered, per.confirmed, per.delivered, per.applied),
		fmt.Sprintf("  oldest:   unsettled %8s   in queue %8s   in tiers %8s", short(s.View.Unsettled), short(s.View.Work), short(s.View.Retry)),
		fmt.Sprintf("  backlog   %8d     unacked   %8d     retrying  %8d     parked  %8d", s.View.Backlog, s.View.Held, s.View.RetryDebt, s.Counts.Parked),
		fmt.Sprintf("  breaker   %8s     fault     %s", s.Breaker, orNone(strings.Join(s.Faults, "+"))),
	}
}

// barWidth is the progress bar's, in characters.
const barWidth = 30

// bar shows how far the load is and how long it has to go; the drain's end is known only by its bound.
func bar(s experiment.Progress) string {
	left := "draining"
	filled := barWidth
	if s.Elapsed < s.Planned && s.Planned > 0 {
		filled = int(barWidth * s.Elapsed / s.Planned)
		left = short(s.Planned-s.Elapsed) + " left"
	}
	return fmt.Sprintf("  %-9s [%s%s] %s of %s, %s", s.Phase, strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled),
		short(s.Elapsed), short(s.Planned), left)
}

// perSecond are rates as text.
type perSecond struct{ offered, confirmed, delivered, applied string }

func rates(s experiment.Progress) perSecond {
	per := func(now, before int64) string {
		if s.Interval <= 0 {
			return "0"
		}
		return fmt.Sprintf("%.0f", float64(now-before)/s.Interval.Seconds())
	}
	return perSecond{
		offered: per(s.Counts.Offered, s.Since.Offered), confirmed: per(s.Counts.Confirmed, s.Since.Confirmed),
		delivered: per(s.Counts.Delivered, s.Since.Delivered), applied: per(s.Counts.Applied, s.Since.Applied),
	}
}

// short writes a duration with as many digits as a person reads at a glance.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
