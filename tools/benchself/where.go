package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// where says where the time of runs went. Sums and counts add up over runs.
type where struct {
	seconds  float64 // of all
	cpus     int
	broker   float64 // CPU seconds, and of the next two
	database float64
	own      float64
	busy     float64        // CPU seconds of the machine that were in use
	known    bool           // of broker and database: their processes were found
	walBytes int64          // written ahead
	rows     float64        // effects, by their rate
	sessions map[string]int // looks at sessions of the database that were not idle, by what they waited for
}

// What sessions of a database wait for begins with the type of pg_stat_activity. A session at work waits for nothing.
const (
	atWork  = "CPU"
	forLock = "Lock"
)

// Bounds of naming a bottleneck.
const (
	busyEnough   = 0.85 // of all CPUs: with the start of a load and its last messages in it, the machine has little more to give
	lockedEnough = 0.5  // of the sessions: the queue is the lock's, whatever the CPUs do
)

// kindsShown is how many kinds of waiting are said, from the commonest on.
const kindsShown = 5

func (w where) plus(o where) where {
	sum := where{
		seconds: w.seconds + o.seconds, cpus: max(w.cpus, o.cpus), broker: w.broker + o.broker, database: w.database + o.database,
		own: w.own + o.own, busy: w.busy + o.busy, known: o.known, walBytes: w.walBytes + o.walBytes, rows: w.rows + o.rows,
		sessions: map[string]int{},
	}
	for _, of := range []map[string]int{w.sessions, o.sessions} {
		for kind, n := range of {
			sum.sessions[kind] += n
		}
	}
	return sum
}

// together adds up one side of all pairs.
func together(pairs []pair, side func(pair) where) (sum where) {
	for _, p := range pairs {
		sum = sum.plus(side(p))
	}
	return sum
}

// bottleneck names what bounds the runs.
func (w where) bottleneck() string {
	kind, share := w.commonest()
	switch {
	case w.locked() >= lockedEnough:
		return "locks: the sessions wait for each other's rows"
	case w.capacity() > 0 && w.busy/w.capacity() >= busyEnough:
		return "the machine's CPU, most of it in " + w.greediest()
	case share > 0 && kind != atWork:
		return "waits of the database's sessions, most of them for " + kind
	default:
		return "round trips: no CPU is short, and no wait of the sessions stands out"
	}
}

func (w where) capacity() float64 { return w.seconds * float64(w.cpus) }

// greediest names the program with the most CPU time.
func (w where) greediest() string {
	if !w.known {
		return "programs that are not seen from here"
	}
	switch max(w.broker, w.database, w.own, w.rest()) {
	case w.database:
		return "PostgreSQL"
	case w.broker:
		return "the broker"
	case w.own:
		return "spillway itself"
	default:
		return "programs that have no part in the run"
	}
}

// rest is the CPU time of everything else on the machine.
func (w where) rest() float64 { return max(0, w.busy-w.broker-w.database-w.own) }

// commonest returns what sessions did most of the time.
func (w where) commonest() (kind string, share float64) {
	for k := range w.sessions {
		if s := w.share(k); s > share || (s == share && k < kind) {
			kind, share = k, s
		}
	}
	return kind, share
}

// locked returns the share of sessions that waited for another's rows.
func (w where) locked() (share float64) {
	for kind := range w.sessions {
		if strings.HasPrefix(kind, forLock+" ") {
			share += w.share(kind)
		}
	}
	return share
}

func (w where) share(kind string) float64 {
	all := 0
	for _, n := range w.sessions {
		all += n
	}
	if all == 0 {
		return 0
	}
	return float64(w.sessions[kind]) / float64(all)
}

// String says what bounds the runs, and what that was concluded from.
func (w where) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bound by %s.", w.bottleneck())
	if w.capacity() > 0 {
		fmt.Fprintf(&b, " CPUs busy %s", percent(w.busy/w.capacity()))
		if w.known {
			fmt.Fprintf(&b, " (PostgreSQL %s, broker %s, spillway %s, the rest %s)", percent(w.database/w.capacity()),
				percent(w.broker/w.capacity()), percent(w.own/w.capacity()), percent(w.rest()/w.capacity()))
		}
	}
	kinds := make([]string, 0, len(w.sessions))
	for kind := range w.sessions {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		return cmp.Or(cmp.Compare(w.sessions[b], w.sessions[a]), strings.Compare(a, b))
	})
	kinds = kinds[:min(len(kinds), kindsShown)]
	for i, kind := range kinds {
		kinds[i] = kind + " " + percent(w.share(kind))
	}
	if len(kinds) > 0 {
		fmt.Fprintf(&b, "; sessions: %s", strings.Join(kinds, ", "))
	}
	if w.rows > 0 {
		fmt.Fprintf(&b, "; %.0f bytes of log an effect", float64(w.walBytes)/w.rows)
	}
	return b.String() + "."
}
