package inbox

import "github.com/jackc/pgx/v5/pgtype"

// sqlApplyBatch is sqlApply for arrays of messages in order of arrival. It returns the places (from 1) of those applied
// and of those refused; the ids of the rest were claimed before.
//
// All locks are taken in one order, so two batches never wait for each other in a ring: first the ids, sorted, then the
// SKUs, sorted. `held` reads all of `claim` before its sort ends, and locks after that. It locks on its own since an
// update joined to a list takes the rows in whichever order the plan meets them; and it shows the newest version of a row
// that it had to wait for, which the statement's snapshot does not.
//
// What is read more than once is computed once; `turn` has one reader, which would compute it for every message.
//
// A SKU that has enough for all takes no thought, and neither does one that has too little for the smallest. In between
// `walk` goes through the SKU's messages one by one.
const sqlApplyBatch = `
with recursive message as (
    select * from unnest($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::int[], $6::boolean[], $7::uuid[], $8::text[],
                         $9::text[])
        with ordinality as m (id, seq, instance, sku, count, refuse, refusal, order_id, correlation_id, place)
), claim as (
    insert into inbox (message_id, seq, instance) select id, seq, instance from message order by id
    on conflict (message_id) do nothing
    returning message_id
), fresh as (
    select * from message where id in (select message_id from claim)
), demand as (
    select sku, sum(count) as wanted, min(count) as least from fresh where not refuse group by sku
), held as (
    select sku, available from stock where sku in (select sku from demand) order by sku for no key update
), ample as (
    select sku from held join demand using (sku) where wanted <= available
), tight as (
    select sku, available from held join demand using (sku) where wanted > available and least <= available
), turn as materialized (
    select sku, id, count, row_number() over (partition by sku order by place) as n
      from fresh join tight using (sku) where not refuse
), walk as (
    select sku, 0::bigint as n, available as remaining, null::uuid as id, false as fits from tight
     union all
    select sku, t.n, case when count <= remaining then remaining - count else remaining end, t.id, count <= remaining
      from walk w join turn t using (sku) where t.n = w.n + 1
), verdict as (
    select *, not refuse and (sku in (select sku from ample) or id in (select w.id from walk w where w.fits)) as fits
      from fresh
), reserve as (
    update stock s
       set available = s.available - sold.total, reserved = s.reserved + sold.total, updated_at = clock_timestamp()
      from (select sku, sum(count) as total from verdict where fits group by sku) sold
     where s.sku = sold.sku
), refusal as (
    insert into inventory_outbox (id, message_id, type, payload)
    select refusal, id, $10::text,
           jsonb_build_object('order_id', order_id, 'correlation_id', correlation_id, 'causation_id', id, 'sku', sku,
                              'count', count, 'reason', case when refuse then 'forced' else 'no-stock' end)
      from verdict where not fits
), effect as (
    insert into effect_log (seq, instance, message_id, kind, sku, count)
    select seq, instance, id, case when fits then 'reserved' else 'refused' end, sku, count from verdict
)
select array_agg(place) filter (where fits), array_agg(place) filter (where not fits) from verdict`

// columns are messages as arrays.
type columns struct {
	ids          []pgtype.UUID
	seqs         []int64
	instances    []int32
	skus         []string
	counts       []int32
	refuse       []bool
	refusals     []pgtype.UUID
	orders       []string
	correlations []string
}

// columnsOf turns calls into arrays, in the same order.
func columnsOf(calls []*call) columns {
	n := len(calls)
	c := columns{
		ids: make([]pgtype.UUID, n), seqs: make([]int64, n), instances: make([]int32, n), skus: make([]string, n),
		counts: make([]int32, n), refuse: make([]bool, n), refusals: make([]pgtype.UUID, n), orders: make([]string, n),
		correlations: make([]string, n),
	}
	for i, one := range calls {
		m := &one.claim
		c.ids[i], c.refusals[i] = one.key.message, one.key.refusal
		c.seqs[i], c.instances[i] = m.Seq, int32(m.Instance)
		c.skus[i], c.counts[i], c.refuse[i] = m.SKU, int32(m.Count), m.Refuse
		c.orders[i], c.correlations[i] = m.OrderID, m.CorrelationID
	}
	return c
}
