package postgres_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

// awaitLimit bounds a wait for a condition; it is far above what any takes.
const awaitLimit = 20 * time.Second

// await waits for a condition of the server, which has no signal to wait on.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(awaitLimit); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestEffectsCountRowsPerMessageInOrder(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, `
insert into effect_log (seq, instance, message_id, kind, sku, count)
select seq, instance, gen_random_uuid(), kind, 'SKU-000000', 1
  from (values (7, 1, 'reserved'), (2, 0, 'refused'), (9, 0, 'reserved'), (9, 0, 'reserved'), (9, 0, 'refused'),
               (-1, 0, 'reserved'), (-1, 0, 'reserved')) v (seq, instance, kind)`)
	var got []postgres.EffectRow
	err := db.Effects(t.Context(), func(r postgres.EffectRow) error { got = append(got, r); return nil })
	want := []postgres.EffectRow{
		{Seq: -1, Instance: 0, Applied: 2},
		{Seq: 2, Instance: 0, Refused: 1},
		{Seq: 9, Instance: 0, Applied: 2, Refused: 1},
		{Seq: 7, Instance: 1, Applied: 1},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("effects are %+v, %v; want %+v", got, err, want)
	}
}

func TestClaimsAndOutboxRowsAreRead(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, `insert into inbox (message_id, seq, instance) select gen_random_uuid(), i, i % 3 from generate_series(0, 9999) i`)
	exec(t, db, `insert into inventory_outbox (id, message_id, type, payload) select gen_random_uuid(), message_id, 'x', '{}' from inbox where seq < 5`)
	var n, sum int64
	err := db.Claims(t.Context(), func(seq int64, instance int) error {
		if int64(instance) != seq%3 {
			t.Errorf("claim %d came with instance %d", seq, instance)
		}
		n, sum = n+1, sum+seq
		return nil
	})
	if err != nil || n != 10000 || sum != 9999*10000/2 {
		t.Errorf("%d claims with sum %d, %v; want each of 10000 once", n, sum, err)
	}
	if rows, err := db.OutboxRows(t.Context()); err != nil || rows != 5 {
		t.Errorf("%d outbox rows, %v; want 5", rows, err)
	}
}

func TestAReaderMayStopAStream(t *testing.T) {
	t.Parallel()
	db := postgrestest.NewSized(t, postgres.Settings{}, 1)
	exec(t, db, `insert into inbox (message_id, seq, instance) select gen_random_uuid(), i, 0 from generate_series(1, 100000) i`)
	enough := errors.New("enough")
	calls := 0
	err := db.Claims(t.Context(), func(int64, int) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("the stream ended after %d calls with %v", calls, err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("the pool's one connection is not usable: %v", err)
	}
}

func TestAReaderMayUseTheDatabaseMeanwhile(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, `insert into inbox (message_id, seq, instance) values (gen_random_uuid(), 4, 0)`)
	err := db.Claims(t.Context(), func(int64, int) error {
		_, err := db.OutboxRows(t.Context())
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
