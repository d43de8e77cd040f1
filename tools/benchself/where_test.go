package main

import (
	"strings"
	"testing"
)

func TestTheBottleneckIsNamedByWhatWasSeen(t *testing.T) {
	t.Parallel()
	base := where{seconds: 10, cpus: 2, known: true, broker: 4, database: 6, own: 3}
	with := func(change func(*where)) where {
		w := base
		change(&w)
		return w
	}
	for name, row := range map[string]struct {
		where where
		want  string
	}{
		"sessions wait for rows on a busy machine": {with(func(w *where) {
			w.busy, w.sessions = 19, map[string]int{"Lock transactionid": 40, "Lock tuple": 20, atWork: 40}
		}), "locks"},
		"a busy machine, by others":       {with(func(w *where) { w.busy, w.database, w.sessions = 18, 3, map[string]int{"LWLock WALWrite": 90} }), "CPU, most of it in programs that have no part"},
		"a busy machine, by the database": {with(func(w *where) { w.busy, w.database = 18, 10 }), "CPU, most of it in PostgreSQL"},
		"a busy machine, by us":           {with(func(w *where) { w.busy, w.own = 18, 10 }), "CPU, most of it in spillway itself"},
		"a busy machine, by the broker":   {with(func(w *where) { w.busy, w.broker = 18, 10 }), "CPU, most of it in the broker"},
		"servers out of sight":            {with(func(w *where) { w.busy, w.known = 18, false }), "not seen from here"},
		"sessions wait for the log":       {with(func(w *where) { w.busy, w.sessions = 9, map[string]int{"IO WalSync": 60, atWork: 40} }), "most of them for IO WalSync"},
		"nothing stands out":              {with(func(w *where) { w.busy, w.sessions = 9, map[string]int{"IO WalSync": 40, atWork: 60} }), "round trips"},
		"a lock of another kind":          {with(func(w *where) { w.busy, w.sessions = 9, map[string]int{"LockManager x": 100} }), "for LockManager x"},
	} {
		if got := row.where.bottleneck(); !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q in it", name, got, row.want)
		}
	}
}

func TestWhatWasSeenAddsUpOverRuns(t *testing.T) {
	t.Parallel()
	one := where{seconds: 5, cpus: 2, known: true, broker: 1, database: 4, own: 2, busy: 9.5, walBytes: 5000, rows: 10, sessions: map[string]int{atWork: 30, "Lock tuple": 10}}
	got := together([]pair{{a: measurement{where: one}}, {a: measurement{where: one}}}, func(p pair) where { return p.a.where }).String()
	for _, want := range []string{
		"bound by the machine's CPU, most of it in PostgreSQL.", "CPUs busy 95 % (PostgreSQL 40 %, broker 10 %, spillway 20 %, the rest 25 %)",
		"sessions: CPU 75 %, Lock tuple 25 %", "500 bytes of log an effect.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
