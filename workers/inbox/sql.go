package inbox

import "spillway/internal/event"

// The statements of both strategies. Tables are found through the search_path.

const (
	sqlBegin    = `begin`
	sqlCommit   = `commit`
	sqlRollback = `rollback`

	// sqlClaim inserts the id or, when it is there, no row. Against a concurrent claim of the same id it waits until the
	// other commits (no row) or rolls back (a row), so two can never both insert.
	sqlClaim = `insert into inbox (message_id, seq, instance) values ($1, $2, $3) on conflict (message_id) do nothing`

	// sqlReserve moves units from available to reserved, or no row when there are too few or no such SKU. The row stays
	// locked until COMMIT, so it comes as late in the transaction as it can.
	sqlReserve = `
update stock
   set available = available - $2::bigint, reserved = reserved + $2::bigint, updated_at = clock_timestamp()
 where sku = $1 and available >= $2::bigint`

	// sqlLogEffect appends to the effect log, which has no unique key: a second effect would show.
	sqlLogEffect = `
insert into effect_log (seq, instance, message_id, kind, sku, count) values ($1, $2, $3, $4, $5, $6)`

	// sqlRefuse writes the outgoing event of a refusal. The plain insert is meant: a second event under the same id would
	// be a broken claim, and must be loud.
	sqlRefuse = `
insert into inventory_outbox (id, message_id, type, payload)
values ($1, $2, $3, jsonb_build_object('order_id', $4::text, 'correlation_id', $5::text, 'causation_id', $2::uuid,
                                       'sku', $6::text, 'count', $7::int, 'reason', $8::text))`
)

// sqlApply is all of the above as one statement. A statement is a transaction of its own, so claim, stock, event and
// effect stand or fall together. Each part reads the part before it, which fixes their order: PostgreSQL leaves it open
// otherwise. The update looks again at the newest version of a row that it had to wait for, so `available` is never
// stale. No row comes back when the id was claimed before.
const sqlApply = `
with claim as (
    insert into inbox (message_id, seq, instance) values ($1, $2, $3) on conflict (message_id) do nothing
    returning message_id
), reserve as (
    update stock
       set available = available - $5::bigint, reserved = reserved + $5::bigint, updated_at = clock_timestamp()
     where sku = $4::text and available >= $5::bigint and not $6::boolean
       and exists (select from claim)
    returning sku
), refusal as (
    insert into inventory_outbox (id, message_id, type, payload)
    select $7, message_id, $8,
           jsonb_build_object('order_id', $9::text, 'correlation_id', $10::text, 'causation_id', message_id,
                              'sku', $4::text, 'count', $5::bigint, 'reason', $11::text)
      from claim where not exists (select from reserve)
), effect as (
    insert into effect_log (seq, instance, message_id, kind, sku, count)
    select $2, $3, message_id, case when exists (select from reserve) then 'reserved' else 'refused' end, $4, $5::bigint
      from claim
    returning kind
)
select case when exists (select from effect where kind = 'reserved') then 'reserved' else 'refused' end from claim`

// Kinds of a row in the effect log.
const (
	kindReserved = "reserved"
	kindRefused  = "refused"
)

// Reasons in a refusal's payload.
const (
	reasonNoStock = "no-stock"
	reasonForced  = "forced"
)

// kindOf names the effect of a result in the effect log.
func kindOf(r event.Result) string {
	if r == event.Applied {
		return kindReserved
	}
	return kindRefused
}

// reason says why a refusal of this claim is one.
func (c *Claim) reason() string {
	if c.Refuse {
		return reasonForced
	}
	return reasonNoStock
}
