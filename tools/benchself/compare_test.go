package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOnlyTheMissingAuditIsForgiven(t *testing.T) {
	t.Parallel()
	const unaudited = `{"severity": "error", "code": "account", "message": "not audited: this run has no database"}`
	for name, row := range map[string]struct {
		json string
		want error
	}{
		"a run without a database": {`{"findings": [` + unaudited + `], "messages": {"offered": 9, "confirmed": 9, "not_audited": 9}}`, nil},
		"a starved generator": {
			`{"findings": [` + unaudited + `, {"severity": "error", "code": "generator-lagged"}], "messages": {"offered": 9, "confirmed": 9, "not_audited": 9}}`,
			errSpoilt,
		},
		"messages without a confirm": {`{"findings": [` + unaudited + `], "messages": {"offered": 9, "confirmed": 8, "not_audited": 9}}`, errSpoilt},
		"messages left in a queue":   {`{"findings": [` + unaudited + `], "messages": {"offered": 9, "confirmed": 9, "not_audited": 8}}`, errSpoilt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "result.json")
			if err := os.WriteFile(path, []byte(row.json), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readOutcome(path); !errors.Is(err, row.want) {
				t.Errorf("%v, want %v", err, row.want)
			}
		})
	}
}

func TestThePageSaysTheMediansAndTheRatioOfThePairs(t *testing.T) {
	t.Parallel()
	m := func(rate, cpu float64) measurement { return measurement{rate, 1_000_000, cpu} }
	c := comparison{pairs: []pair{{m(200, 10), m(100, 40), 0.1}, {m(300, 20), m(100, 40), 0.2}, {m(450, 30), m(300, 40), 0.9}}}
	text := page(options{load: loadOptions{size: 512, window: 200, prefetch: 150}}, c, "some machine", time.Now())
	for _, want := range []string{
		"| confirmed, messages/s | 300 | 100 | 2.000 | 1.500 to 3.000 |", "| own CPU, us/message | 20.0 | 40.0 | 0.500 | 0.250 to 0.750 |",
		"| 3 | 450 | 300 | 30.0 | 40.0 | 90 % |", "used 20 % of the CPU time (median; 90 % at most)", "512 bytes", "window of 200", "prefetch of 150", "some machine",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestThePlainLoopPublishesConsumesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	uri := os.Getenv("SPILLWAY_TEST_URI")
	if uri == "" {
		t.Fatal("SPILLWAY_TEST_URI is not set; run make test, which starts the servers that this test needs")
	}
	l := loadOptions{duration: 300 * time.Millisecond, warmup: 100 * time.Millisecond, window: 20, prefetch: 20, size: 512}
	m, err := runPlain(t.Context(), uri, l)
	if err != nil {
		t.Fatal(err)
	}
	if rate := m.ConfirmedPerSecond; rate < 10 || float64(m.Confirmed) < rate*0.2 {
		t.Errorf("%v confirmed a second, %d in all", rate, m.Confirmed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runPlain(ctx, uri, l); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped at once it says %v", err)
	}
}
