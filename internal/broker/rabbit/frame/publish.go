package frame

import (
	"encoding/binary"
	"strconv"
	"time"
)

// persistent is the delivery mode of a message that is to outlive its broker's restart.
const persistent = 2

// mandatory is the flag of basic.publish that asks for a return when no queue is bound.
const mandatory = 1

// Bits of the property flags, in the order in which the properties follow.
const (
	hasContentType     = 1 << 15
	hasContentEncoding = 1 << 14
	hasHeaders         = 1 << 13
	hasDeliveryMode    = 1 << 12
	hasPriority        = 1 << 11
	hasCorrelationID   = 1 << 10
	hasReplyTo         = 1 << 9
	hasExpiration      = 1 << 8
	hasMessageID       = 1 << 7
	hasTimestamp       = 1 << 6
	hasType            = 1 << 5
)

// Publish is one message to write. It is always mandatory and persistent. Empty properties are left out.
type Publish struct {
	Exchange      string
	RoutingKey    string
	ContentType   string
	CorrelationID string
	MessageID     string
	Type          string
	Timestamp     time.Time     // whole seconds on the wire; zero is left out
	Expiration    time.Duration // whole milliseconds on the wire, at least one; 0 is left out
	Headers       func(*Fields) // writes the headers; nil for none
	Body          []byte
}

// AppendPublish appends the frames of one message: method, content header, and as many body frames as frames of at most
// maxFrame bytes need. It does not check that names and ids fit into the 255 bytes of a short string, but cuts them.
func AppendPublish(dst []byte, channel uint16, maxFrame int, p *Publish) []byte {
	dst, start := begin(dst, TypeMethod, channel)
	dst = appendMethod(dst, methodPublish)
	dst = append(dst, 0, 0) // reserved
	dst = appendShort(dst, p.Exchange)
	dst = appendShort(dst, p.RoutingKey)
	dst = end(append(dst, mandatory), start)

	dst, start = begin(dst, TypeHeader, channel)
	dst = binary.BigEndian.AppendUint16(dst, classBasic)
	dst = append(dst, 0, 0) // weight
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(p.Body)))
	dst = end(p.appendProperties(dst), start)
	return appendBody(dst, channel, maxFrame, p.Body)
}

func appendBody(dst []byte, channel uint16, maxFrame int, body []byte) []byte {
	for room := maxFrame - Overhead; len(body) > 0; {
		part := body[:min(room, len(body))]
		body = body[len(part):]
		var start int
		dst, start = begin(dst, TypeBody, channel)
		dst = end(append(dst, part...), start)
	}
	return dst
}

func (p *Publish) appendProperties(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, p.flags())
	dst = appendProperty(dst, p.ContentType)
	if p.Headers != nil {
		dst = appendTable(dst, p.Headers)
	}
	dst = append(dst, persistent)
	dst = appendProperty(dst, p.CorrelationID)
	if p.Expiration > 0 {
		dst = appendShort(dst, strconv.FormatInt(max(1, p.Expiration.Milliseconds()), 10))
	}
	dst = appendProperty(dst, p.MessageID)
	if !p.Timestamp.IsZero() {
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.Timestamp.Unix()))
	}
	return appendProperty(dst, p.Type)
}

func (p *Publish) flags() uint16 {
	flags := uint16(hasDeliveryMode)
	mark := func(present bool, bit uint16) {
		if present {
			flags |= bit
		}
	}
	mark(p.ContentType != "", hasContentType)
	mark(p.Headers != nil, hasHeaders)
	mark(p.CorrelationID != "", hasCorrelationID)
	mark(p.Expiration > 0, hasExpiration)
	mark(p.MessageID != "", hasMessageID)
	mark(!p.Timestamp.IsZero(), hasTimestamp)
	mark(p.Type != "", hasType)
	return flags
}

// appendProperty appends a short string unless it is empty.
func appendProperty(dst []byte, s string) []byte {
	if s == "" {
		return dst
	}
	return appendShort(dst, s)
}
