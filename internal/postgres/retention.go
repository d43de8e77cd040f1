package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The inbox can forget. A message id starts with the milliseconds of the instant that its message was due (UUID version 7,
// RFC 9562, 5.7), so the ids of a time are a range of the primary key: they can be deleted without another index, and they
// can be a partition of their own. Ids that start with no time would lie anywhere in it.

// ErrInUse means that the inbox could not be locked in time, since others were working on it. The next purge does the rest.
var ErrInUse = errors.New("the inbox is in use")

const (
	// partitionsAhead is for how many widths from now there are partitions: a purge that comes late must not be felt.
	partitionsAhead = 3
	// partitionPrefix starts a partition's name; the milliseconds of its lower bound follow.
	partitionPrefix = "inbox_"
	// purgeRows is the most claims that one statement deletes.
	purgeRows = 10_000
	// purgeLockTimeout bounds the wait for the lock that a change of partitions needs. While it waits, claims wait behind it.
	purgeLockTimeout = "200ms"
)

// sqlPartitionInbox makes the inbox anew, with a part for the claims that no other takes: those that come after their own is gone.
const sqlPartitionInbox = `
alter table inbox rename to inbox_plain;
create table inbox (like inbox_plain including defaults) partition by range (message_id);
alter table inbox add primary key (message_id);
drop table inbox_plain;
create table inbox_rest partition of inbox default`

// partitionInbox turns the empty inbox of a new schema into partitions that hold the ids of one width of time each.
func partitionInbox(ctx context.Context, tx pgx.Tx, now time.Time, width time.Duration) error {
	if _, err := tx.Exec(ctx, sqlPartitionInbox); err != nil {
		return fmt.Errorf("partition the inbox: %w", err)
	}
	return addPartitions(ctx, tx, now, width)
}

// addPartitions makes those that are missing, from now on. Attaching a finished table leaves the inbox open to claims, which
// creating one as a partition would not.
func addPartitions(ctx context.Context, tx pgx.Tx, now time.Time, width time.Duration) error {
	first := now.Truncate(width)
	for i := range partitionsAhead + 1 {
		from := first.Add(time.Duration(i) * width)
		name := pgx.Identifier{partitionPrefix + strconv.FormatInt(from.UnixMilli(), 10)}.Sanitize()
		var there bool
		if err := tx.QueryRow(ctx, `select to_regclass($1) is not null`, name).Scan(&there); err != nil {
			return err
		}
		if there {
			continue
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`create table %s (like inbox including all); alter table inbox attach partition %[1]s for values from ('%s') to ('%s')`,
			name, firstID(from), firstID(from.Add(width))))
		if err != nil {
			return fmt.Errorf("add a partition of the inbox: %w", err)
		}
	}
	return nil
}

// firstID returns the lowest id whose time is not before t.
func firstID(t time.Time) string {
	var id pgtype.UUID
	binary.BigEndian.PutUint64(id.Bytes[:8], uint64(t.UnixMilli())<<16)
	id.Valid = true
	return id.String()
}

// Purge deletes the claims of messages that were due before t. It calls gone with the sequences of each batch once they are
// gone, and returns how many that were, also with an error.
func (db *DB) Purge(ctx context.Context, t time.Time, gone func(seqs []int64)) (n int64, err error) {
	const query = `
delete from inbox where message_id in (select message_id from inbox where message_id < $1 order by message_id limit $2)
returning seq`
	for {
		rows, err := db.pool.Query(ctx, query, firstID(t), purgeRows)
		if err != nil {
			return n, fmt.Errorf("purge the inbox: %w", err)
		}
		seqs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return n, fmt.Errorf("purge the inbox: %w", err)
		}
		gone(seqs)
		n += int64(len(seqs))
		if len(seqs) < purgeRows {
			return n, nil
		}
	}
}

// RollPartitions drops the partitions whose ids are all from before t, deletes claims as old as that which came too late for
// theirs, and makes the partitions of the time to come. It calls gone with the sequences of each part once they are gone,
// and returns how many that were, also with an error. ErrInUse leaves what is left to the next call.
func (db *DB) RollPartitions(ctx context.Context, now, t time.Time, width time.Duration, gone func(seqs []int64)) (n int64, err error) {
	if err := db.addPartitions(ctx, now, width); err != nil {
		return 0, err
	}
	names, err := db.partitionsBefore(ctx, t.Add(-width))
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		seqs, err := db.dropPartition(ctx, name)
		if err != nil {
			return n, err
		}
		gone(seqs)
		n += int64(len(seqs))
	}
	late, err := db.purgeRest(ctx, t)
	if err != nil {
		return n, err
	}
	gone(late)
	return n + int64(len(late)), nil
}

func (db *DB) addPartitions(ctx context.Context, now time.Time, width time.Duration) error {
	return db.briefly(ctx, func(tx pgx.Tx) error { return addPartitions(ctx, tx, now, width) })
}

// briefly runs a transaction that gives up soon where it would have to wait for a lock.
func (db *DB) briefly(ctx context.Context, work func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '`+purgeLockTimeout+`'`); err != nil {
			return err
		}
		return work(tx)
	})
	if sqlState(err) == "55P03" {
		return fmt.Errorf("%w: no lock within %s", ErrInUse, purgeLockTimeout)
	}
	return err
}

// partitionsBefore returns those whose lower bound is at or before t, the oldest first.
func (db *DB) partitionsBefore(ctx context.Context, t time.Time) (names []string, err error) {
	const query = `select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'inbox'::regclass order by 1`
	rows, err := db.pool.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("list the inbox's partitions: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the inbox's partitions: %w", err)
	}
	for _, name := range all {
		from, err := strconv.ParseInt(strings.TrimPrefix(name, partitionPrefix), 10, 64)
		if err == nil && from <= t.UnixMilli() { // the rest has no number
			names = append(names, name)
		}
	}
	return names, nil
}

// dropPartition reads which messages a partition holds, and drops it.
func (db *DB) dropPartition(ctx context.Context, name string) (seqs []int64, err error) {
	table := pgx.Identifier{name}.Sanitize()
	err = db.briefly(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select seq from `+table)
		if err != nil {
			return err
		}
		if seqs, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `drop table `+table)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("drop the inbox's partition %s: %w", name, err)
	}
	return seqs, nil
}

// purgeRest deletes claims by when they were made: their ids say that they should be gone already.
func (db *DB) purgeRest(ctx context.Context, t time.Time) ([]int64, error) {
	rows, err := db.pool.Query(ctx, `delete from inbox_rest where claimed_at < $1 returning seq`, t)
	if err != nil {
		return nil, fmt.Errorf("purge the inbox: %w", err)
	}
	seqs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("purge the inbox: %w", err)
	}
	return seqs, nil
}
