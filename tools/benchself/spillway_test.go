package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyWhatBelongsToARunIsForgiven(t *testing.T) {
	t.Parallel()
	const unaudited = `{"severity": "error", "code": "account", "message": "not audited: this run has no database"}`
	for name, row := range map[string]struct {
		json    string
		forgive []string
		want    error
	}{
		"a run without a database": {`{"findings": [` + unaudited + `], "messages": {"offered": 9, "confirmed": 9, "not_audited": 9}}`, []string{codeUnaudited}, nil},
		"the same where one was promised": {
			`{"findings": [` + unaudited + `], "messages": {"offered": 9, "confirmed": 9, "not_audited": 9}}`, nil, errSpoilt,
		},
		"a starved generator": {
			`{"findings": [` + unaudited + `, {"severity": "error", "code": "generator-lagged"}], "messages": {"offered": 9, "confirmed": 9, "not_audited": 9}}`,
			[]string{codeUnaudited}, errSpoilt,
		},
		"messages without a confirm": {`{"messages": {"offered": 9, "confirmed": 8, "not_audited": 9}}`, []string{codeUnaudited}, errSpoilt},
		"messages left in a queue":   {`{"messages": {"offered": 9, "confirmed": 9, "not_audited": 8}}`, []string{codeUnaudited}, errSpoilt},
		"all applied":                {`{"findings": [{"severity": "warning", "code": "closed-load"}], "messages": {"offered": 9, "confirmed": 9, "applied": 9}}`, nil, nil},
		"one lost":                   {`{"messages": {"offered": 9, "confirmed": 9, "applied": 9, "lost": 1}}`, nil, errSpoilt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "result.json")
			if err := os.WriteFile(path, []byte(row.json), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readOutcome(path, row.forgive); !errors.Is(err, row.want) {
				t.Errorf("%v, want %v", err, row.want)
			}
		})
	}
}

func TestARunIsUnderWayFromItsLoadToTheEndOfItsDrain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "result.json")
	const text = `{"phases": [{"name": "warm-up", "start_seconds": 0.5, "end_seconds": 1}, {"name": "load", "start_seconds": 1, "end_seconds": 2.5},
		{"name": "drain", "start_seconds": 2.5, "end_seconds": 5}, {"name": "audit", "start_seconds": 5, "end_seconds": 6}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readOutcome(path, nil)
	if err != nil || r.underWay() != 4 {
		t.Errorf("%v s, %v; want 4", r.underWay(), err)
	}
}
