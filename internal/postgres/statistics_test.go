package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

func TestSinceSubtractsCountersAndKeepsLevels(t *testing.T) {
	t.Parallel()
	before := postgres.Statistics{WALBytes: 100, Commits: 50, DeadTuples: 9}
	for name, c := range map[string]struct{ now, want postgres.Statistics }{
		"counters that went on are subtracted": {
			postgres.Statistics{WALBytes: 175, Commits: 60, DeadTuples: 4},
			postgres.Statistics{WALBytes: 75, Commits: 10, DeadTuples: 4},
		},
		"a counter that a crash reset counts from zero": {
			postgres.Statistics{WALBytes: 100, Commits: 3},
			postgres.Statistics{WALBytes: 0, Commits: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.now.Since(before); got != c.want {
				t.Errorf("since = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestStatsSeeWhatWasWritten(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{SKUs: 100, InitialStock: 5})
	before := stats(t, db)
	const writes = 20
	for range writes {
		exec(t, db, `update stock set reserved = reserved + 1`)
	}
	if got := stats(t, db).Since(before).WALBytes; got < writes*100*50 {
		t.Errorf("%d bytes of WAL for %d row versions of some 100 bytes", got, writes*100)
	}
	await(t, "the commits to be reported", func() bool { return stats(t, db).Since(before).Commits >= writes })
	await(t, "dead tuples to be reported", func() bool { return stats(t, db).DeadTuples > 0 })
}

// A counter's row must find room in its own page, and no index must care, or every update pays for an index entry. Each
// row is updated once: further rounds need the first versions pruned, which other tests' open transactions prevent.
func TestUpdatesOfTheStockAreHOT(t *testing.T) {
	t.Parallel()
	const skus = 2000
	db := postgrestest.New(t, postgres.Settings{SKUs: skus, InitialStock: 5})
	exec(t, db, `update stock set reserved = reserved + 1, updated_at = clock_timestamp()`)
	const query = `select %s from pg_stat_user_tables where schemaname = current_schema() and relname = 'stock'`
	await(t, "the updates to be reported", func() bool {
		return scan[int](t, db, fmt.Sprintf(query, "n_tup_upd")) == skus
	})
	if hot := scan[int](t, db, fmt.Sprintf(query, "n_tup_hot_upd")); hot < skus*95/100 {
		t.Errorf("%d of %d updates were HOT", hot, skus)
	}
}

func stats(t *testing.T, db *postgres.DB) postgres.Statistics {
	t.Helper()
	s, err := db.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPoolWaitCountsTheWaitForAConnection(t *testing.T) {
	t.Parallel()
	db := postgrestest.NewSized(t, postgres.Settings{}, 1)
	before := db.PoolStats()
	held, err := postgres.Acquire(t.Context(), db.Pool())
	if err != nil {
		t.Fatal(err)
	}
	if s := db.PoolStats(); s.Acquired != 1 || s.Idle != 0 || s.Max != 1 {
		t.Errorf("pool is %+v with its one connection held", s)
	}
	waiter := make(chan error, 1)
	go func() { waiter <- db.Ping(t.Context()) }()
	const hold = 30 * time.Millisecond
	time.Sleep(hold) // the time itself is what is measured
	held.Release()
	if err := <-waiter; err != nil {
		t.Fatal(err)
	}
	after := db.PoolStats()
	if after.Waits-before.Waits != 1 || after.Wait <= before.Wait || db.PoolWait() != after.Wait {
		t.Errorf("pool went from %+v to %+v", before, after)
	}
}

func TestVersionAndSettings(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	version, err := db.Version(t.Context())
	if err != nil || version == "" || strings.Contains(version, " ") || version[0] < '1' || version[0] > '9' {
		t.Errorf("version is %q, %v", version, err)
	}
	settings, err := db.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"synchronous_commit", "fsync", "full_page_writes", "wal_level", "shared_buffers", "max_connections"} {
		if got, want := settings[name], scan[string](t, db, `select current_setting($1)`, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestDoctorPassesAFitServer(t *testing.T) {
	t.Parallel()
	db := open(t, "")
	names := make([]string, 0, 4)
	for _, c := range db.Doctor(t.Context()) {
		names = append(names, c.Name)
		if !c.OK || c.Fix != "" || c.Detail == "" {
			t.Errorf("check %+v", c)
		}
	}
	if got := strings.Join(names, ", "); got != "version, primary, create schemas, connections" {
		t.Errorf("checks are %s", got)
	}
}

func TestDoctorSaysWhenThePoolDoesNotFit(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgres.Config{URI: postgrestest.URI(t), MaxConns: 100000})
	checks := db.Doctor(t.Context())
	room := checks[len(checks)-1]
	if room.OK || !strings.Contains(room.Detail, "100000 needed") || room.Fix == "" {
		t.Errorf("check %+v", room)
	}
}

func TestDoctorSaysWhenTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Config{URI: postgrestest.URI(t)})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if checks := db.Doctor(t.Context()); len(checks) != 1 || checks[0].OK || checks[0].Name != "answers" {
		t.Errorf("checks are %+v", checks)
	}
}
