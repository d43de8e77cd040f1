package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Statistics are the server's own counters. They are absolute; a run takes them twice and keeps Since. Other work on
// the same server is in WALBytes, and on the same database in Commits.
type Statistics struct {
	WALBytes   int64 // bytes of write-ahead log since the cluster was made: exact, at once
	Commits    int64 // commits in the database; a backend reports its own within about a second of going idle
	DeadTuples int64 // dead row versions in the run's schema, as of each table's last report
}

// Since returns what came after an earlier reading; DeadTuples is a level and stays as it is. A counter that went back,
// as Commits does when a crash resets the statistics, counts from zero.
func (s Statistics) Since(earlier Statistics) Statistics {
	return Statistics{
		WALBytes:   since(s.WALBytes, earlier.WALBytes),
		Commits:    since(s.Commits, earlier.Commits),
		DeadTuples: s.DeadTuples,
	}
}

func since(now, earlier int64) int64 {
	if now < earlier {
		return now
	}
	return now - earlier
}

const sqlStatistics = `
select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,
       (select xact_commit from pg_stat_database where datname = current_database()),
       (select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables where schemaname = $1)`

// Stats reads the server's counters in one round trip.
func (db *DB) Stats(ctx context.Context) (Statistics, error) {
	var s Statistics
	err := db.pool.QueryRow(ctx, sqlStatistics, db.schema).Scan(&s.WALBytes, &s.Commits, &s.DeadTuples)
	if err != nil {
		return Statistics{}, fmt.Errorf("read statistics: %w", err)
	}
	return s, nil
}

// PoolStats is the state of the pool at one moment.
type PoolStats struct {
	Wait     time.Duration // in all, by callers that found no idle connection and got one later
	Waits    int64         // such callers
	Acquired int           // connections in use
	Idle     int
	Max      int
	Opened   int64 // connections made since Open
}

// PoolStats returns the state of the pool. It does not touch the server.
func (db *DB) PoolStats() PoolStats {
	s := db.pool.Stat()
	return PoolStats{
		Wait:     s.EmptyAcquireWaitTime(),
		Waits:    s.EmptyAcquireCount(),
		Acquired: int(s.AcquiredConns()),
		Idle:     int(s.IdleConns()),
		Max:      int(s.MaxConns()),
		Opened:   s.NewConnsCount(),
	}
}

// PoolWait returns the time that callers have waited for a connection since Open, added up over the callers. Waits that
// ended in an error are not in it.
func (db *DB) PoolWait() time.Duration { return db.pool.Stat().EmptyAcquireWaitTime() }

// Version returns the server's version, such as "18.6", without what the packager adds.
func (db *DB) Version(ctx context.Context) (string, error) {
	var full string
	if err := db.pool.QueryRow(ctx, `select current_setting('server_version')`).Scan(&full); err != nil {
		return "", fmt.Errorf("read the server's version: %w", err)
	}
	version, _, _ := strings.Cut(full, " ")
	return version, nil
}

// sqlSettings names the settings that a result must show for its numbers to be judged: what a commit waits for, what it
// writes, and how much memory and how many connections there are.
const sqlSettings = `
select name, current_setting(name)
  from pg_settings
 where name in ('synchronous_commit', 'fsync', 'full_page_writes', 'wal_level', 'wal_sync_method', 'wal_compression',
                'commit_delay', 'max_wal_size', 'checkpoint_timeout', 'shared_buffers', 'work_mem', 'max_connections',
                'autovacuum', 'default_transaction_isolation', 'synchronous_standby_names', 'io_method',
                'data_checksums', 'jit')`

// Settings returns the server's settings that bear on the results, with units, as SHOW prints them. A setting that the
// server's version does not have is left out.
func (db *DB) Settings(ctx context.Context) (map[string]string, error) {
	rows, err := db.pool.Query(ctx, sqlSettings)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	settings := make(map[string]string)
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		settings[name] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return settings, nil
}
