// Package envelope is what a message says about itself: its identity, the JSON body of an order event, and the headers
// that carry measurement and failure metadata. It knows no broker; drivers turn Headers into their own tables.
//
// The package is a leaf. Decoders take bytes from anyone and never panic; they are fuzzed.
package envelope

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// SchemaVersion is the version of the body that this build writes and reads.
const SchemaVersion = 1

// TypeOrderCreated is the event type that the load side publishes.
const TypeOrderCreated = "order.created"

// Errors of Decode. Each is permanent: no attempt at the same bytes can succeed.
var (
	ErrBadJSON       = errors.New("the body is not valid JSON")
	ErrMissingField  = errors.New("a required field is missing")
	ErrUnknownSchema = errors.New("the schema version is unknown")
)

// Order is the body of an order event.
type Order struct {
	ID            string    `json:"id"`
	Type          string    `json:"type"`
	SchemaVersion int       `json:"schema_version"`
	OccurredAt    time.Time `json:"occurred_at"`
	Producer      string    `json:"producer"`
	CorrelationID string    `json:"correlation_id"`
	CausationID   string    `json:"causation_id"`
	Aggregate     Aggregate `json:"aggregate"`
	Data          Data      `json:"data"`
}

// Aggregate names the thing that the event is about, and its version after the event.
type Aggregate struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Version int64  `json:"version"`
}

// Data is what an order asks for.
type Data struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

// padOverhead is what the pad field adds beside its content: `,"pad":""`.
const padOverhead = len(`,"pad":""`)

// MinSize is the size in bytes below which a body cannot be asked for: no envelope that this build writes is longer, with
// its longest ids, SKU and numbers.
const MinSize = 480

// AppendJSON appends the body to dst, padded to exactly size bytes with a "pad" field, or with blanks where that has no
// room, and returns the extended slice. A body longer than size is left as it is. Strings are quoted by encoding/json's rules.
func (o *Order) AppendJSON(dst []byte, size int) []byte {
	start := len(dst)
	dst = appendStringField(append(dst, '{'), "id", o.ID)
	dst = appendStringField(append(dst, ','), "type", o.Type)
	dst = append(dst, `,"schema_version":`...)
	dst = strconv.AppendInt(dst, int64(o.SchemaVersion), 10)
	dst = append(dst, `,"occurred_at":"`...)
	dst = o.OccurredAt.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = appendStringField(append(dst, `",`...), "producer", o.Producer)
	dst = appendStringField(append(dst, ','), "correlation_id", o.CorrelationID)
	dst = appendStringField(append(dst, ','), "causation_id", o.CausationID)
	dst = appendStringField(append(dst, `,"aggregate":{`...), "type", o.Aggregate.Type)
	dst = appendStringField(append(dst, ','), "id", o.Aggregate.ID)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, o.Aggregate.Version, 10)
	dst = appendStringField(append(dst, `},"data":{`...), "sku", o.Data.SKU)
	dst = append(dst, `,"count":`...)
	dst = strconv.AppendInt(dst, int64(o.Data.Count), 10)
	dst = append(dst, '}')
	return append(appendPad(dst, size-(len(dst)-start)-1), '}')
}

// appendPad appends n bytes in all: a pad field, or blanks when n is too small for one.
func appendPad(dst []byte, n int) []byte {
	if n < padOverhead {
		for range n {
			dst = append(dst, ' ')
		}
		return dst
	}
	dst = append(dst, `,"pad":"`...)
	for left := n - padOverhead; left > 0; left -= len(padding) {
		dst = append(dst, padding[:min(left, len(padding))]...)
	}
	return append(dst, '"')
}

const padding = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

func appendStringField(dst []byte, name, value string) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	if plain(value) {
		dst = append(dst, '"')
		dst = append(dst, value...)
		return append(dst, '"')
	}
	quoted, err := json.Marshal(value)
	if err != nil { // a string always marshals; kept so that a change of type cannot corrupt a body in silence
		return append(dst, `""`...)
	}
	return append(dst, quoted...)
}

// plain reports whether a string needs no escaping in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
