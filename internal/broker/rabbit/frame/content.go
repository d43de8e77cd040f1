package frame

import (
	"strconv"
	"time"
)

// Route is what basic.deliver and basic.return say of a message.
type Route struct {
	Tag         uint64 // of a delivery
	Redelivered bool   // of a delivery
	Code        int    // why a message was returned
	Text        string // the same in the broker's words
	Exchange    string
	RoutingKey  string
}

// Delivery reads a basic.deliver.
func (f *Frame) Delivery(known *Names) (Route, error) {
	r := reader[[]byte]{rest: f.Payload[4:]}
	r.short() // the consumer's tag: there is one consumer
	out := Route{Tag: r.uint(8), Redelivered: r.octet()&1 != 0}
	out.Exchange, out.RoutingKey = known.exchange(r.short()), known.key(r.short())
	return out, r.err
}

// Returned reads a basic.return.
func (f *Frame) Returned(known *Names) (Route, error) {
	r := reader[[]byte]{rest: f.Payload[4:]}
	out := Route{Code: int(r.uint(2)), Text: string(r.short())}
	out.Exchange, out.RoutingKey = known.exchange(r.short()), known.key(r.short())
	return out, r.err
}

// Names remembers the last exchange and routing key, so that a stream of messages with the same ones holds one copy of
// them. The zero value is ready to use. It belongs to one goroutine.
type Names struct{ lastExchange, lastKey string }

func (n *Names) exchange(s []byte) string { return same(&n.lastExchange, s) }
func (n *Names) key(s []byte) string      { return same(&n.lastKey, s) }

func same(last *string, s []byte) string {
	if *last != string(s) {
		*last = string(s)
	}
	return *last
}

// Header is what a content header says. Its strings share one copy of the header's bytes.
type Header struct {
	Size          uint64 // of the body, in bytes
	ContentType   string
	CorrelationID string
	MessageID     string
	Type          string
	Timestamp     time.Time     // zero when absent
	Expiration    time.Duration // 0 when absent or not a number
}

// Content reads a content header and tells sink of the headers in it.
func (f *Frame) Content(sink Sink) (h Header, err error) {
	r := reader[string]{rest: string(f.Payload)}
	r.skip(2 + 2) // class and weight
	h.Size = r.uint(8)
	flags := uint16(r.uint(2))
	if flags&1 != 0 {
		return h, malformed("more property flags than there are properties")
	}
	has := func(bit uint16) bool { return flags&bit != 0 }
	text := func(bit uint16) string {
		if has(bit) {
			return r.short()
		}
		return ""
	}
	h.ContentType = text(hasContentType)
	text(hasContentEncoding)
	if has(hasHeaders) {
		if table := r.long(); r.err == nil {
			if err := eachField(table, sink); err != nil {
				return h, err
			}
		}
	}
	if has(hasDeliveryMode) {
		r.skip(1)
	}
	if has(hasPriority) {
		r.skip(1)
	}
	h.CorrelationID = text(hasCorrelationID)
	text(hasReplyTo)
	h.Expiration = milliseconds(text(hasExpiration))
	h.MessageID = text(hasMessageID)
	if has(hasTimestamp) {
		h.Timestamp = time.Unix(int64(r.uint(8)), 0)
	}
	h.Type = text(hasType)
	return h, r.err
}

func milliseconds(text string) time.Duration {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0 // not a TTL that RabbitMQ would have taken
	}
	return time.Duration(n) * time.Millisecond
}
