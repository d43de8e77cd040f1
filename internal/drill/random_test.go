package drill

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"spillway/internal/profile"
	"spillway/internal/result"
)

func TestRandomDrillsAreSoundOverlapAndAreTheSameBySeed(t *testing.T) {
	t.Parallel()
	var c Coverage
	for seed := range uint64(2000) {
		source := Random(seed)
		if again := Random(seed); !bytes.Equal(source.Data, again.Data) {
			t.Fatalf("seed %d gives two profiles", seed)
		}
		p, err := profile.Parse(source, nil, result.CheckThresholds)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, source.Data)
		}
		c.Cover(p)
		if n := p.Load.Rate * p.Load.Duration.Seconds(); n < leastMessages {
			t.Errorf("seed %d offers %v messages", seed, n)
		}
		if !overlap(p) {
			t.Errorf("seed %d: no two faults overlap\n%s", seed, source.Data)
		}
		if p.Workers.Ack != profile.AckAfterCommit || p.Topology.DeadLetterStrategy != "at-least-once" || p.Expect.Lost != 0 {
			t.Errorf("seed %d may lose messages", seed)
		}
	}
	var table bytes.Buffer
	if err := c.Table(&table); err != nil {
		t.Fatal(err)
	}
	for kind, row := range c.cells {
		if kind == profile.FaultPolicyRemoved {
			t.Error("a fault that loses messages was drawn")
		}
		if !strings.Contains(table.String(), kind) || len(row) < 3 {
			t.Errorf("%s met %v\n%s", kind, row, table.String())
		}
	}
}

func overlap(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Faults, func(a profile.Fault) bool {
		return slices.ContainsFunc(p.Faults, func(b profile.Fault) bool {
			return a.From < b.From && b.From < a.From+a.For
		})
	})
}
