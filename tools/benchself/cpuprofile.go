package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// observing are prefixes of the functions that make a sample one of observing: whoever called them, and whatever they
// call. The fan-out is the entry of what is told of each message; probe and watch look at the whole some times a second.
var observing = []string{
	"spillway/internal/event.Load.", "spillway/internal/event.Work.", "spillway/internal/event.Links.",
	"spillway/internal/ledger.", "spillway/internal/latency.", "spillway/internal/storm.", "spillway/internal/metrics.",
	"spillway/internal/probe.",
	"spillway/internal/experiment.(*watch)", "spillway/internal/experiment.(*signals)", "spillway/internal/experiment.(*pace)",
	"github.com/HdrHistogram/", "github.com/prometheus/",
}

var errEmptyProfile = errors.New("the CPU profile has no samples")

// shares are parts of a process's CPU time, 0 to 1, by the observing package nearest to the root of the stack but for the
// fan-out, which only passes on.
type shares map[string]float64

func (s shares) sum() (sum float64) {
	for _, share := range s {
		sum += share
	}
	return sum
}

// observingShares reads a CPU profile and returns the shares of its time that were spent observing.
func observingShares(r io.Reader) (shares, error) {
	p, err := profile.Parse(r)
	if err != nil {
		return nil, fmt.Errorf("CPU profile: %w", err)
	}
	spent, total := shares{}, 0.0
	for _, s := range p.Sample {
		time := float64(s.Value[len(s.Value)-1]) // the last value of a CPU profile is time
		total += time
		if who := observer(s); who != "" {
			spent[who] += time
		}
	}
	if total == 0 {
		return nil, errEmptyProfile
	}
	for who := range spent {
		spent[who] /= total
	}
	return spent, nil
}

const fanOut = "event"

// observer names the package for which a sample was spent; "" for none. A stack begins with its leaf.
func observer(s *profile.Sample) (who string) {
	for _, location := range slices.Backward(s.Location) {
		for _, line := range slices.Backward(location.Line) {
			if line.Function == nil {
				continue
			}
			if p := observingPackage(line.Function.Name); p != "" && (who == "" || who == fanOut) {
				who = p
			}
		}
	}
	return who
}

func observingPackage(function string) string {
	for _, prefix := range observing {
		if strings.HasPrefix(function, prefix) {
			_, name, _ := strings.Cut(prefix, "internal/")
			name, _, _ = strings.Cut(name, ".")
			return cmp.Or(strings.TrimSuffix(name, "/"), "libraries")
		}
	}
	return ""
}
