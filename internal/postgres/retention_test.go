package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

const width = time.Minute

// claimAt puts one claim into the inbox whose id starts with the time.
func claimAt(t *testing.T, db *postgres.DB, seq int64, at time.Time) {
	t.Helper()
	exec(t, db, fmt.Sprintf(`insert into inbox (message_id, seq, instance) values ('%s', %d, 0)`, idAt(at, seq), seq))
}

func idAt(at time.Time, seq int64) string {
	ms := fmt.Sprintf("%012x", at.UnixMilli())
	return fmt.Sprintf("%s-%s-7000-8000-%012x", ms[:8], ms[8:], seq)
}

func kept(t *testing.T, db *postgres.DB) (seqs []int64) {
	t.Helper()
	err := db.Claims(t.Context(), func(seq int64, _ int) error {
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(seqs)
	return seqs
}

func TestAPurgeDeletesWhatIsOlderByItsID(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	now := time.Now()
	exec(t, db, fmt.Sprintf(`insert into inbox (message_id, seq, instance)
select ('%s' || lpad(to_hex(n), 12, '0'))::uuid, n, 0 from generate_series(1, 25000) n`, idAt(now.Add(-time.Hour), 0)[:24]))
	claimAt(t, db, 30_000, now.Add(-30*time.Minute))
	claimAt(t, db, 30_001, now)
	var gone []int64
	n, err := db.Purge(t.Context(), now.Add(-30*time.Minute), func(seqs []int64) { gone = append(gone, seqs...) })
	if err != nil || n != 25_000 || int64(len(gone)) != n {
		t.Errorf("purged %d, told of %d, %v; want 25000", n, len(gone), err)
	}
	if got := kept(t, db); !slices.Equal(got, []int64{30_000, 30_001}) {
		t.Errorf("kept %v", got)
	}
}

func TestPartitionsRoll(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{InboxPartition: width})
	now := time.Now()
	this := now.Truncate(width)
	claimAt(t, db, 1, now)
	claimAt(t, db, 2, this.Add(2*width))    // in the last but one of those ahead
	claimAt(t, db, 3, this.Add(-time.Hour)) // in the rest: it comes too late for its own
	claimAt(t, db, 4, this.Add(3*width))    // the last
	var gone []int64
	roll := func(at time.Time, keep time.Duration) (int64, error) {
		return db.RollPartitions(t.Context(), at, at.Add(-keep), width, func(seqs []int64) { gone = append(gone, seqs...) })
	}
	if n, err := roll(now, width); err != nil || n != 0 {
		t.Errorf("purged %d, %v; want nothing: every claim is fresh", n, err)
	}
	// All of the first partition is older than a width two widths after its end.
	if n, err := roll(this.Add(2*width), width); err != nil || n != 2 || !slices.Equal(gone, []int64{1, 3}) {
		t.Errorf("purged %d: %v, %v; want 1 with its partition and 3 by its claim's age", n, gone, err)
	}
	if got := kept(t, db); !slices.Equal(got, []int64{2, 4}) {
		t.Errorf("kept %v, want 2 and 4", got)
	}
	claimAt(t, db, 5, this.Add(5*width)) // ahead of the second roll
	claimAt(t, db, 6, now)               // its partition is gone
	if got := kept(t, db); !slices.Equal(got, []int64{2, 4, 5, 6}) {
		t.Errorf("kept %v", got)
	}
}

func TestARollDoesNotWaitForATransaction(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{InboxPartition: width})
	now := time.Now()
	claimAt(t, db, 1, now)
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `select from inbox`); err != nil {
		t.Fatal(err)
	}
	later := now.Add(3 * width)
	roll := func() (int64, error) {
		return db.RollPartitions(t.Context(), later, later.Add(-width), width, func([]int64) {})
	}
	if n, err := roll(); !errors.Is(err, postgres.ErrInUse) || n != 0 {
		t.Errorf("purged %d, %v; want ErrInUse", n, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := roll(); err != nil || n != 1 {
		t.Errorf("purged %d, %v; want the claim that was put off", n, err)
	}
}
