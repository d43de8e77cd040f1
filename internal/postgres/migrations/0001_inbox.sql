-- The inventory service's tables. Names carry no schema: the run's schema is the search_path.

-- One row per message that was ever taken up. The primary key is the claim: whoever inserts the row owns the effect.
-- Ids start with a time, so the index grows at its right edge.
create table inbox (
    message_id uuid        primary key,
    seq        bigint      not null,
    instance   int         not null,
    claimed_at timestamptz not null default clock_timestamp()
);

-- One counter per SKU. Half of each page stays free and no index but the key exists, so that every update is HOT: the
-- new row version goes into the same page, no index is touched, and the next reader prunes the dead versions.
create table stock (
    sku        text        primary key,
    available  bigint      not null check (available >= 0),
    reserved   bigint      not null default 0,
    updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- Outgoing events, written in the transaction of what they report. The id is derived from the message's, so it is the
-- same on every attempt. sent_at is null until a relay has published the row.
create table inventory_outbox (
    id         uuid        primary key,
    message_id uuid        not null,
    type       text        not null,
    payload    jsonb       not null,
    created_at timestamptz not null default clock_timestamp(),
    sent_at    timestamptz
);

-- The measuring instrument: one row per effect, appended in the effect's transaction. It has no unique key on purpose,
-- since it must be able to hold the duplicate that the inbox should have prevented. Nothing is updated or deleted here,
-- and autovacuum is off so that the instrument causes no load of its own; the other tables are vacuumed as in service.
create table effect_log (
    seq        bigint      not null,
    instance   int         not null,
    message_id uuid        not null,
    kind       text        not null check (kind in ('reserved', 'refused')),
    sku        text        not null,
    count      int         not null,
    at         timestamptz not null default clock_timestamp()
) with (autovacuum_enabled = false);
