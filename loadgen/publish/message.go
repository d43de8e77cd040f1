package publish

import (
	"math/rand/v2"
	"strconv"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
)

// Ways in which a message can be bad on purpose.
const (
	BadJSON       = "bad-json"
	MissingField  = "missing-field"
	UnknownSchema = "unknown-schema"
	EmptyID       = "empty-id"
	OutOfRange    = "out-of-range" // more units than the database's constraint allows
)

// Bad makes a share of the messages bad in one way.
type Bad struct {
	Kind  string
	Share float64
}

// Factory makes the messages of a run. A message is a pure function of seed, sequence and due instant: publishing it
// again makes the very same one, so an unsettled message costs no memory for its body. It is safe for concurrent use.
type Factory struct {
	Base     *timebase.Base
	Run      string
	Instance int
	Seed     uint64
	Exchange string
	Size     draw.Size // body bytes
	SKUs     []string
	Keys     draw.Keys // over SKUs
	CountMin int
	CountMax int
	Bad      []Bad
}

// outOfRangeCount is above the limit of the inbox's effect log, and within what its column holds.
const outOfRangeCount = 2_000_000

// producerName is what the envelope's producer field and header say.
const producerName = "spillway-loadgen"

// draws are the random choices of one message.
type draws struct {
	sku   string
	count int
	bad   string
}

func (f *Factory) draw(seq int64) draws {
	var source rand.PCG // on the stack: this is the hot path
	source.Seed(f.Seed, uint64(seq))
	return draws{
		sku:   f.SKUs[f.Keys.Index(f.Seed, seq)],
		count: f.CountMin + int(source.Uint64()%uint64(f.CountMax-f.CountMin+1)), // the bias of a range below 2^20 cannot be seen
		bad:   pickBad(f.Bad, float64(source.Uint64()>>11)/(1<<53)),
	}
}

func pickBad(kinds []Bad, at float64) string {
	for _, b := range kinds {
		if at < b.Share {
			return b.Kind
		}
		at -= b.Share
	}
	return ""
}

// BadKind returns how the message is spoilt, "" for a good one.
func (f *Factory) BadKind(seq int64) string {
	if len(f.Bad) == 0 {
		return ""
	}
	return f.draw(seq).bad
}

// Make writes the message into m, using body as scratch, and returns the grown scratch. sent is when it is first written.
func (f *Factory) Make(m *broker.Message, body []byte, seq int64, scheduled, sent time.Duration) []byte {
	d := f.draw(seq)
	due := f.Base.Wall(scheduled)
	id := envelope.Identity{Run: f.Run, Instance: f.Instance, Seq: seq}.MessageID(due)
	order := f.order(id, seq, due, d)
	body = f.body(order, body, f.Size.Bytes(f.Seed, seq), d.bad)
	*m = broker.Message{
		Exchange: f.Exchange, RoutingKey: envelope.TypeOrderCreated, MessageID: id, CorrelationID: order.CorrelationID,
		Type: envelope.TypeOrderCreated, ContentType: "application/json", Timestamp: due, Body: body,
		Headers: envelope.Headers{
			Run: f.Run, Instance: f.Instance, Seq: seq, ScheduledAt: f.Base.Micros(scheduled), SentAt: f.Base.Micros(sent),
			TraceParent: traceParent(f.Seed, seq),
		},
	}
	if d.bad == EmptyID {
		m.MessageID = ""
	}
	return body
}

func (f *Factory) order(id string, seq int64, due time.Time, d draws) *envelope.Order {
	request, command, order := names(seq)
	return &envelope.Order{
		ID: id, Type: envelope.TypeOrderCreated, SchemaVersion: envelope.SchemaVersion, OccurredAt: due, Producer: producerName,
		CorrelationID: request, CausationID: command,
		Aggregate: envelope.Aggregate{Type: "order", ID: order, Version: 1},
		Data:      envelope.Data{SKU: d.sku, Count: d.count},
	}
}

// names returns the ids that go with a sequence. They are parts of one text, which is one allocation.
func names(seq int64) (request, command, order string) {
	const prefixes = "req-cmd-order-"
	var digits [20]byte
	number := strconv.AppendInt(digits[:0], seq, 10)
	var room [len(prefixes) + 3*len(digits)]byte
	all := append(append(room[:0], "req-"...), number...)
	one := len(all)
	all = append(append(all, "cmd-"...), number...)
	two := len(all)
	all = append(append(all, "order-"...), number...)
	text := string(all)
	return text[:one], text[one:two], text[two:]
}

// body writes the JSON, spoilt as asked.
func (f *Factory) body(o *envelope.Order, scratch []byte, size int, bad string) []byte {
	switch bad {
	case MissingField:
		o.Data.SKU = ""
	case UnknownSchema:
		o.SchemaVersion = envelope.SchemaVersion + 98
	case OutOfRange:
		o.Data.Count = outOfRangeCount
	}
	scratch = o.AppendJSON(scratch[:0], size)
	if bad == BadJSON {
		scratch[0] = '['
	}
	return scratch
}

// traceParent returns a W3C trace context header, level 1: version, trace id, span id, sampled.
func traceParent(seed uint64, seq int64) string {
	const trace, span, flags = len("00-"), len("00-") + 32 + 1, len("00-") + 32 + 1 + 16 + 1
	var out [flags + 2]byte
	copy(out[:], "00-")
	putHex(out[trace:], seed|1)
	putHex(out[trace+16:], uint64(seq)+1)
	out[span-1] = '-'
	putHex(out[span:], uint64(seq)+1)
	copy(out[flags-1:], "-01")
	return string(out[:])
}

// putHex writes 16 digits.
func putHex(dst []byte, v uint64) {
	const digits = "0123456789abcdef"
	for i := range 16 {
		dst[i] = digits[v>>(60-4*i)&0xf]
	}
}
