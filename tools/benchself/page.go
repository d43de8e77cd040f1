package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// page writes the comparison as Markdown.
func page(o options, c comparison, on string, began time.Time) string {
	var b strings.Builder
	l := o.load
	fmt.Fprintf(&b, `# Performance

Made by `+"`make bench-self`"+`; do not edit. It is about the machine below and no other: make it again on yours.

- Machine: %s
- %s, spillway %s (%s), %s
- %s, %d pairs in the order A B B A, %s in all; the most CPU time that a hypervisor took in a run was %.2f %%

## Against a plain loop

`, on, c.about.broker, c.about.spillway, c.about.revision, c.about.goVersion,
		began.UTC().Format("2006-01-02"), len(c.pairs), took(time.Since(began)), 100*c.about.stealMax)
	fmt.Fprintf(&b, "Both sides publish persistent messages of %d bytes into a quorum queue with a window of %d and consume them with a "+
		"prefetch of %d,\non one broker, in turn, each run a process of its own: %v of warm-up, then %v that count.\n\n", l.size, l.window, l.prefetch, l.warmup, l.duration)
	b.WriteString(`- **spillway**: ` + "`spillway run`" + `, closed load, no database, with ledger, histograms, series and metrics on. It makes, encodes and
  decodes a real order envelope for each message.
- **plain loop**: what common Go tools do: one connection for each side, NotifyPublish, one ack for each delivery, the same
  properties and headers with a constant body. It measures nothing.

`)
	busy := of(c.pairs, func(p pair) float64 { return 100 * p.others })
	fmt.Fprintf(&b, "While neither side ran, the idle broker and everything else on the machine used %.0f %% of the CPU time (median; %.0f %% at most).\n"+
		"The more that is, the less a single pair says, and the wider the intervals.\n\n", median(busy), slices.Max(busy))
	table(&b, c.pairs)
	b.WriteString(`
Medians over the runs. A ratio is the median of the pairs' ratios, with its 95 % percentile bootstrap interval over pairs
(10,000 resamples). CPU is user and system time of the whole process, start and audit included, over all confirmed messages.

`)
	runs(&b, c.pairs)
	return b.String()
}

func table(b *strings.Builder, pairs []pair) {
	rate := func(m measurement) float64 { return m.ConfirmedPerSecond }
	b.WriteString("| measure | spillway | plain loop | ratio | 95 % interval |\n|---|---|---|---|---|\n")
	row := func(name, format string, figure func(measurement) float64) {
		ours := median(of(pairs, func(p pair) float64 { return figure(p.ours) }))
		plain := median(of(pairs, func(p pair) float64 { return figure(p.plain) }))
		r := bootstrap(of(pairs, func(p pair) float64 { return figure(p.ours) / figure(p.plain) }))
		fmt.Fprintf(b, "| %s | "+format+" | "+format+" | %.3f | %.3f to %.3f |\n", name, ours, plain, r.mid, r.low, r.high)
	}
	row("confirmed, messages/s", "%.0f", rate)
	row("own CPU, us/message", "%.1f", measurement.cpuPerMessage)
}

func runs(b *strings.Builder, pairs []pair) {
	b.WriteString("| pair | spillway, messages/s | plain loop, messages/s | spillway, us | plain loop, us | others |\n|---|---|---|---|---|---|\n")
	for i, p := range pairs {
		fmt.Fprintf(b, "| %d | %.0f | %.0f | %.1f | %.1f | %.0f %% |\n", i+1, p.ours.ConfirmedPerSecond, p.plain.ConfirmedPerSecond,
			p.ours.cpuPerMessage(), p.plain.cpuPerMessage(), 100*p.others)
	}
}

// machine describes this one, without its name.
func machine() string {
	model := field("/proc/cpuinfo", "model name")
	if model == "" {
		model = "processor of unknown model"
	}
	text := fmt.Sprintf("%d x %s, %s/%s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH)
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		text += ", memory " + memory
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		text += ", kernel " + strings.TrimSpace(string(kernel))
	}
	return text
}

// field returns the value of the first line "name: value" of a file, "" without one.
func field(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
