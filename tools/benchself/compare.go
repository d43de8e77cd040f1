package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// pair is one run of each side, next to each other in time.
type pair struct {
	ours, plain measurement
	others      float64 // see others
}

// comparison is all pairs, and what the program under test said of where it ran.
type comparison struct {
	pairs []pair
	about about
}

// about is read from the last result of the program under test.
type about struct {
	spillway, revision string
	broker             string
	goVersion          string
	stealMax           float64 // greatest share of CPU time that a hypervisor took in one run
}

// compare runs the pairs in the order A B B A, so that a drift of the machine falls on both sides.
func compare(ctx context.Context, o options) (c comparison, err error) {
	for i := range o.pairs {
		p := pair{others: others(ctx)}
		first, second := func() error { p.ours, err = ours(ctx, o, &c.about); return err }, func() error { p.plain, err = plain(ctx, o); return err }
		if i%2 == 1 {
			first, second = second, first
		}
		if err := errors.Join(first(), second()); err != nil {
			return c, fmt.Errorf("pair %d: %w", i+1, err)
		}
		fmt.Fprintf(os.Stderr, "pair %d of %d: spillway %.0f/s, %.1f us each; plain loop %.0f/s, %.1f us each\n", i+1, o.pairs,
			p.ours.ConfirmedPerSecond, p.ours.cpuPerMessage(), p.plain.ConfirmedPerSecond, p.plain.cpuPerMessage())
		c.pairs = append(c.pairs, p)
	}
	return c, nil
}

// plain runs the plain loop as a child of its own.
func plain(ctx context.Context, o options) (m measurement, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	l := o.load
	cmd := exec.CommandContext(ctx, self, "-plain", "-d", l.duration.String(), "-warmup", l.warmup.String(),
		"-window", strconv.Itoa(l.window), "-prefetch", strconv.Itoa(l.prefetch), "-size", strconv.Itoa(l.size))
	cmd.Env = append(os.Environ(), "SPILLWAY_URI="+o.uri) // not an argument: it holds a password
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("plain loop: %w", err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("plain loop: %w", err)
	}
	m.CPUSeconds = cpuOf(cmd)
	return m, m.check("plain loop")
}

var errNothingConfirmed = errors.New("nothing was confirmed")

func (m measurement) check(who string) error {
	if m.Confirmed == 0 || m.ConfirmedPerSecond <= 0 {
		return fmt.Errorf("%s: %w", who, errNothingConfirmed)
	}
	return nil
}

// cpuOf returns the CPU time, user and system, that a process took from its start to its end.
func cpuOf(cmd *exec.Cmd) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// ceiling is the profile of the program under test.
//
//go:embed ceiling.yaml
var ceiling []byte

// ours runs the program under test: a closed load without a database, with all that it measures switched on.
func ours(ctx context.Context, o options, a *about) (m measurement, err error) {
	dir, err := os.MkdirTemp("", "spillway-benchself-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	l := o.load
	cmd := exec.CommandContext(ctx, o.spillway, "run", "-", "--quiet", "-o", dir,
		"--set", "load.duration="+l.duration.String(), "--set", "load.warmup="+l.warmup.String(),
		"--set", "load.confirm_window="+strconv.Itoa(l.window), "--set", "workers.prefetch="+strconv.Itoa(l.prefetch),
		"--set", "load.size="+strconv.Itoa(l.size))
	cmd.Env = append(os.Environ(), "SPILLWAY_URI="+o.uri, "SPILLWAY_MANAGEMENT="+o.management)
	cmd.Stdin = bytes.NewReader(ceiling)
	said, runErr := cmd.CombinedOutput() // the exit code is 5, since nothing is audited: the file says whether that is all
	r, err := readOutcome(filepath.Join(dir, "result.json"))
	if err != nil {
		return m, fmt.Errorf("spillway: %w; %w: %s", err, runErr, said)
	}
	r.note(a)
	m = measurement{ConfirmedPerSecond: r.Rates.Confirmed, Confirmed: r.Messages.Confirmed, CPUSeconds: cpuOf(cmd)}
	return m, m.check("spillway")
}

// outcome is what is read of result.json.
type outcome struct {
	Run struct {
		Version, Revision string
	} `json:"run"`
	Environment struct {
		Host struct {
			Steal float64 `json:"steal_ratio"`
		} `json:"host"`
		Broker struct{ Product, Version string } `json:"broker"`
		Go     string                            `json:"go"`
	} `json:"environment"`
	Findings []struct{ Severity, Code, Message string } `json:"findings"`
	Messages struct {
		Offered, Confirmed, Lost int64
		NotAudited               int64 `json:"not_audited"`
	} `json:"messages"`
	Rates struct {
		Confirmed float64 `json:"confirmed_per_second"`
	} `json:"rates"`
}

// errSpoilt is returned for a run whose figures are not the broker's and the client's.
var errSpoilt = errors.New("the run cannot be used")

func readOutcome(path string) (r outcome, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range r.Findings { // that nothing was audited is the one error that belongs to a run without a database
		if f.Severity == "error" && f.Code != "account" {
			return r, fmt.Errorf("%w: %s", errSpoilt, f.Message)
		}
	}
	if m := r.Messages; m.Confirmed != m.Offered || m.NotAudited != m.Offered {
		return r, fmt.Errorf("%w: %d confirmed and %d without an audit, of %d", errSpoilt, m.Confirmed, m.NotAudited, m.Offered)
	}
	return r, nil
}

func (r *outcome) note(a *about) {
	a.spillway, a.revision, a.goVersion = r.Run.Version, r.Run.Revision, r.Environment.Go
	a.broker = r.Environment.Broker.Product + " " + r.Environment.Broker.Version
	a.stealMax = max(a.stealMax, r.Environment.Host.Steal)
}

// took formats a duration of the bench for a person.
func took(d time.Duration) string { return d.Round(time.Second).String() }
