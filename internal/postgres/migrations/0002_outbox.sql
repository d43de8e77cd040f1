-- The orders service's tables, and what a relay needs of both outboxes. A relay claims a batch of unsent rows with FOR
-- UPDATE SKIP LOCKED, publishes them, and marks as sent those that the broker confirmed.

-- The business row. Its key makes writing an order again harmless, which is how a COMMIT whose answer was lost is settled.
create table orders (
    id         uuid        primary key,
    seq        bigint      not null,
    instance   int         not null,
    sku        text        not null,
    count      int         not null,
    placed_at  timestamptz not null,
    created_at timestamptz not null default clock_timestamp()
);

-- The event of an order, written in the same transaction: all that its message carries, so that every publish of it is
-- the same. id names the row; message_id is what goes on the wire, null where the message was spoilt on purpose by an
-- empty id. scheduled_at is when the order was due. due is when the row may next be published: at once, and later after
-- each publish that was not confirmed.
create table outbox (
    id             uuid        primary key,
    seq            bigint      not null,
    instance       int         not null,
    message_id     uuid,
    type           text        not null,
    routing_key    text        not null,
    correlation_id text        not null,
    trace_parent   text        not null,
    scheduled_at   timestamptz not null,
    body           bytea       not null,
    created_at     timestamptz not null default clock_timestamp(),
    due            timestamptz not null default clock_timestamp(),
    tries          int         not null default 0,
    sent_at        timestamptz
);

alter table inventory_outbox
    add column due   timestamptz not null default clock_timestamp(),
    add column tries int         not null default 0;

-- What a claim reads: unsent rows in the order in which they fell due, and no other, so it stays as small as the backlog
-- once vacuum has been. Marking a row sent takes it out of this index, which rules out HOT: each mark writes a new row
-- version and an entry in the primary key. Deleting sent rows instead would save that and lose the record that the audit
-- reads.
create index outbox_unsent on outbox (due) where sent_at is null;
create index inventory_outbox_unsent on inventory_outbox (due) where sent_at is null;
