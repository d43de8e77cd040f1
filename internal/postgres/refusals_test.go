package postgres_test

import (
	"testing"

	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
)

func TestRefusalsAreReadWithTheirEvents(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, postgres.Settings{})
	const id = "00000000-0000-7000-8000-00000000000"
	exec(t, db, `
insert into effect_log (seq, instance, message_id, kind, sku, count)
select 0, 0, ('`+id+`' || n)::uuid, kind, 'SKU-000000', 1
  from (values (1, 'refused'), (2, 'refused'), (2, 'refused'), (3, 'refused'), (4, 'reserved')) v (n, kind)`)
	exec(t, db, `
insert into inventory_outbox (id, message_id, type, payload, sent_at)
select ('`+id+`' || event)::uuid, ('`+id+`' || about)::uuid, 'stock.refused', '{}', sent
  from (values (6, 1, now()), (7, 2, null), (8, 4, null)) v (event, about, sent)`)
	got := map[byte]postgres.RefusalRow{} // by the last byte of the event's id
	err := db.Refusals(t.Context(), func(r postgres.RefusalRow) error {
		got[r.Event[15]] = r
		return nil
	})
	want := map[byte]postgres.RefusalRow{
		6: {Written: true, Sent: true, Refused: true},
		7: {Written: true, Refused: true},
		8: {Written: true},
		0: {Refused: true}, // of message 3, without an event
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("read %+v, %v; want %d rows", got, err, len(want))
	}
	for last, w := range want {
		g := got[last]
		if g.Written != w.Written || g.Sent != w.Sent || g.Refused != w.Refused {
			t.Errorf("event %d is %+v, want %+v", last, g, w)
		}
	}
	if n, err := db.Refused(t.Context()); err != nil || n != 3 {
		t.Errorf("%d messages refused, %v; want 3, one of them twice", n, err)
	}
}
