package postgres_test

import (
	"errors"
	"testing"
	"time"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

// fillOutbox writes six orders. The rows of 0, 1, 4 and 5 were written a minute ago, and 4 and 5 are marked sent later;
// 1 was tried in vain; order 5 has no row, and row 9 has no order.
const fillOutbox = `
insert into orders (id, seq, instance, sku, count, placed_at) select gen_random_uuid(), i, 7, 'a', 1, now() from generate_series(0, 5) i;
insert into outbox (id, seq, instance, type, routing_key, correlation_id, trace_parent, scheduled_at, body, created_at, tries, sent_at)
select gen_random_uuid(), i, 7, 't', 'k', 'c', '', now(), '', now() - age, tries, sent
  from (values (0, interval '1 minute', 0, null::timestamptz), (1, interval '1 minute', 2, null), (2, interval '0', 0, null),
               (3, interval '0', 0, now()), (4, interval '1 minute', 0, now()), (9, interval '0', 0, now())) as v(i, age, tries, sent)`

func TestOrdersAndOutboxAreReadRowByRow(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, fillOutbox)
	orders := map[int64]int{}
	if err := db.Orders(t.Context(), func(seq int64, instance int) error {
		orders[seq] = instance
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(orders) != 6 || orders[0] != 7 || orders[5] != 7 {
		t.Errorf("orders %v", orders)
	}
	rows := map[int64]postgres.OutboxRow{}
	if err := db.Outbox(t.Context(), func(r postgres.OutboxRow) error {
		rows[r.Seq] = r
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[int64]postgres.OutboxRow{
		0: {Seq: 0, Instance: 7}, 1: {Seq: 1, Instance: 7, Tries: 2}, 2: {Seq: 2, Instance: 7},
		3: {Seq: 3, Instance: 7, Sent: true}, 4: {Seq: 4, Instance: 7, Sent: true}, 9: {Seq: 9, Instance: 7, Sent: true},
	}
	for seq, w := range want {
		if rows[seq] != w {
			t.Errorf("row %d is %+v, want %+v", seq, rows[seq], w)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
}

func TestARowIsSkippedWhenMuchYoungerOnesAreSentAndItWasNeverTried(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	empty, err := db.OutboxState(t.Context(), postgres.OutboxOrders, time.Second)
	if err != nil || empty != (postgres.OutboxState{}) {
		t.Errorf("an empty outbox is %+v, %v", empty, err)
	}
	exec(t, db, fillOutbox)
	for _, c := range []struct {
		grace   time.Duration
		skipped int64
	}{{time.Second, 1}, {2 * time.Minute, 0}} {
		s, err := db.OutboxState(t.Context(), postgres.OutboxOrders, c.grace)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rows != 6 || s.Unsent != 3 || s.Skipped != c.skipped || s.Oldest < time.Minute || s.Oldest > time.Hour {
			t.Errorf("with a grace of %v: %+v", c.grace, s)
		}
	}
}

func TestPendingCountsTheUnsentRowsOfEitherOutbox(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, fillOutbox)
	exec(t, db, `insert into inventory_outbox (id, message_id, type, payload, sent_at)
select gen_random_uuid(), gen_random_uuid(), 'x', '{}', case when i > 1 then now() end from generate_series(1, 3) i`)
	for table, want := range map[string]int64{postgres.OutboxOrders: 3, postgres.OutboxInventory: 1} {
		if got, err := db.OutboxPending(t.Context(), table); err != nil || got != want {
			t.Errorf("%s has %d pending, %v; want %d", table, got, err, want)
		}
		if s, err := db.OutboxState(t.Context(), table, 0); err != nil || s.Unsent != want {
			t.Errorf("%s: %+v, %v; want %d unsent", table, s, err, want)
		}
	}
}

func TestOrdersOfAnotherRunAreNotTakenOver(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	exec(t, db, fillOutbox)
	if err := db.Provision(t.Context(), postgres.Settings{}); !errors.Is(err, postgres.ErrSchemaTaken) {
		t.Errorf("error is %v, want ErrSchemaTaken", err)
	}
}
