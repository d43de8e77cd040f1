package outbox

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/postgres"
)

// contentType is that of every event's body.
const contentType = "application/json"

// Source is one outbox table and where its rows go. Make it with Orders or Refusals; the zero value is not usable.
type Source struct {
	table    string
	exchange string
	run      string
	key      string // routing key of a source whose rows carry none
	claim    string // SQL; $1 is the lowest due, $2 the most rows
	scan     func(*Source, pgx.CollectableRow, *row) error
	orders   bool // its rows are the run's own messages, which have a sequence
}

// Table returns the name of the source's table, a closed set fit for a label.
func (s *Source) Table() string { return s.table }

// Orders is the outbox of the orders service. Its events go to the exchange under the routing key of their row; run goes
// into their headers.
func Orders(exchange, run string) Source {
	return Source{table: postgres.OutboxOrders, exchange: exchange, run: run, claim: sqlClaimOrders, scan: scanOrder, orders: true}
}

// Refusals is the outbox of the inventory service. Its events go to the exchange under the given routing key.
func Refusals(exchange, key, run string) Source {
	return Source{table: postgres.OutboxInventory, exchange: exchange, run: run, key: key, claim: sqlClaimRefusals, scan: scanRefusal}
}

// A claim takes unsent rows that are due, the longest due first, skips those that other relays hold, and keeps what it took
// until the transaction ends. now() is when the transaction began; clock_timestamp() could not be used with the index. A
// row that another relay marked sent meanwhile is looked at again in its newest version, and falls out.
//
// $1 bounds the reading from below, see floor. The age of a row is the difference of two readings of the server's own clock,
// so the clocks of client and server need not agree.
const (
	sqlClaimOrders = `
select id, due, tries, (extract(epoch from clock_timestamp() - created_at) * 1e6)::bigint,
       seq, instance, message_id, type, routing_key, correlation_id, trace_parent, scheduled_at, body
  from outbox
 where sent_at is null and due >= $1 and due <= now()
 order by due
 limit $2
   for update skip locked`

	sqlClaimRefusals = `
select id, due, tries, (extract(epoch from clock_timestamp() - created_at) * 1e6)::bigint,
       type, coalesce(payload->>'correlation_id', ''), created_at,
       jsonb_build_object('id', id, 'type', type, 'schema_version', 1, 'occurred_at', created_at, 'producer', 'inventory',
                          'correlation_id', payload->'correlation_id', 'causation_id', payload->'causation_id',
                          'aggregate', jsonb_build_object('type', 'order', 'id', payload->'order_id'),
                          'data', payload - 'order_id' - 'correlation_id' - 'causation_id')::text
  from inventory_outbox
 where sent_at is null and due >= $1 and due <= now()
 order by due
 limit $2
   for update skip locked`
)

// id is a row's key.
type id = [16]byte

// row is one claimed row and what came of it. The lane that claimed it owns it; between a publish and its settlement, the
// settling goroutine.
type row struct {
	id      id
	due     time.Time // server's clock
	tries   int
	age     time.Duration // since it was written, when claimed
	seq     int64         // envelope.NoSeq for a message that is not the run's own
	micros  int64         // x-scheduled-at
	message broker.Message

	sent      time.Duration
	duplicate bool           // confirmed before
	outcome   broker.Outcome // 0 while it was not published
}

// scanOrder reads a row of the orders' outbox.
func scanOrder(s *Source, from pgx.CollectableRow, r *row) error {
	var age int64
	var messageID pgtype.UUID
	var scheduled time.Time
	m := broker.Message{Exchange: s.exchange, ContentType: contentType, Headers: envelope.Headers{Run: s.run}}
	err := from.Scan((*uuid)(&r.id), &r.due, &r.tries, &age, &m.Headers.Seq, &m.Headers.Instance, &messageID, &m.Type,
		&m.RoutingKey, &m.CorrelationID, &m.Headers.TraceParent, &scheduled, &m.Body)
	if err != nil {
		return err
	}
	m.MessageID = messageID.String() // "" for null
	m.Timestamp, m.Headers.ScheduledAt = scheduled, scheduled.UnixMicro()
	r.age, r.seq, r.micros, r.outcome = time.Duration(age)*time.Microsecond, m.Headers.Seq, m.Headers.ScheduledAt, 0
	r.message = m
	return nil
}

// scanRefusal reads a row of the inventory's outbox. The event's id is the row's.
func scanRefusal(s *Source, from pgx.CollectableRow, r *row) error {
	var age int64
	m := broker.Message{
		Exchange: s.exchange, RoutingKey: s.key, ContentType: contentType,
		Headers: envelope.Headers{Run: s.run, Seq: envelope.NoSeq},
	}
	err := from.Scan((*uuid)(&r.id), &r.due, &r.tries, &age, &m.Type, &m.CorrelationID, &m.Timestamp, (*text)(&m.Body))
	if err != nil {
		return err
	}
	m.MessageID = pgtype.UUID{Bytes: r.id, Valid: true}.String()
	r.age, r.seq, r.outcome = time.Duration(age)*time.Microsecond, envelope.NoSeq, 0
	r.message = m
	return nil
}

// uuid scans a key without a detour through text.
type uuid id

// ScanUUID implements pgtype.UUIDScanner.
func (u *uuid) ScanUUID(v pgtype.UUID) error {
	*u = v.Bytes
	return nil
}

// text scans text into bytes.
type text []byte

// ScanText implements pgtype.TextScanner.
func (t *text) ScanText(v pgtype.Text) error {
	*t = []byte(v.String)
	return nil
}
