package main

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watcher looks at the servers while runs go on. It has a connection of its own to the database.
type watcher struct {
	env            *env
	pool           *pgxpool.Pool
	broker, server int // process ids of the servers; 0 is unknown
}

func (e *env) newWatcher(ctx context.Context) (*watcher, error) {
	c, err := pgxpool.ParseConfig(e.o.servers.postgres)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	c.MaxConns = 1
	c.ConnConfig.RuntimeParams["application_name"] = "benchself"
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	w := &watcher{env: e, pool: pool, server: listener(int(c.ConnConfig.Port))}
	if at, err := url.Parse(e.o.servers.uri); err == nil {
		w.broker = listener(portOf(at))
	}
	return w, nil
}

func (w *watcher) close() { w.pool.Close() }

// totals are counters that only grow.
type totals struct {
	at                    time.Time
	broker, database, own float64 // CPU seconds
	idle, all             int64   // ticks of the machine
	wal                   int64   // bytes
}

func (w *watcher) read(ctx context.Context, own int) totals {
	t := totals{at: time.Now()}
	cpu := treesCPU(w.broker, w.server, own)
	t.broker, t.database, t.own = cpu[0], cpu[1], cpu[2]
	t.idle, t.all = processors()
	_ = w.pool.QueryRow(ctx, `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&t.wal) // unknown stays 0: it decides nothing
	return t
}

// window is what was seen of a run while it was under way: from the first look at which several sessions were busy to the
// last one. Neither start nor audit are in it.
type window struct {
	first, last totals
	sessions    map[string]int
}

// where says where the time went between both ends, at a rate of effects per second.
func (s *window) where(known bool, rate float64) where {
	from, to := &s.first, &s.last
	out := where{
		seconds: to.at.Sub(from.at).Seconds(), cpus: runtime.NumCPU(), known: known, own: to.own - from.own, broker: to.broker - from.broker,
		database: to.database - from.database, walBytes: to.wal - from.wal, sessions: s.sessions,
	}
	out.rows = rate * out.seconds
	if all := to.all - from.all; all > 0 {
		out.busy = out.capacity() * (1 - float64(to.idle-from.idle)/float64(all))
	}
	return out
}

const (
	// sampleEvery is how often sessions are looked at: a look costs the database about as much as a message.
	sampleEvery = 50 * time.Millisecond
	// totalsEvery is how many looks come for one reading of the totals, which goes through all processes.
	totalsEvery = 5
	// underWay is how many sessions are busy at once while a run is under way; its start and its audit use one.
	underWay = 2
)

// sqlSessions counts the sessions of runs that are not idle, by what they wait for. Waiting for the client is idleness in
// the midst of a transaction.
const sqlSessions = `
select coalesce(wait_event_type || ' ' || wait_event, $1), count(*)
  from pg_stat_activity
 where application_name like 'spillway\_%' and state <> 'idle'
 group by 1`

// sample looks at the database's sessions, and at the totals, until ctx ends. own is the process of the run.
func (w *watcher) sample(ctx context.Context, own int) window {
	s := window{sessions: map[string]int{}}
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for looks := 0; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return s
		}
		found := w.look(ctx)
		busy := 0
		for _, n := range found {
			busy += n
		}
		if busy < underWay {
			continue
		}
		for kind, n := range found {
			s.sessions[kind] += n
		}
		if looks%totalsEvery == 0 {
			s.last = w.read(ctx, own)
		}
		if looks == 0 {
			s.first = s.last
		}
		looks++
	}
}

// look returns how many sessions wait for what; nothing when the database does not answer.
func (w *watcher) look(ctx context.Context) map[string]int {
	found := map[string]int{}
	rows, err := w.pool.Query(ctx, sqlSessions, atWork)
	if err != nil {
		return found
	}
	var kind string
	var n int
	_, _ = pgx.ForEachRow(rows, []any{&kind, &n}, func() error {
		found[kind] += n
		return nil
	})
	return found
}
