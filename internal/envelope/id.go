package envelope

import (
	"encoding/hex"
	"errors"
	"hash/fnv"
	"time"
)

// Identity names one message: run + instance + sequence. Ledgers of several generators merge by it.
type Identity struct {
	Run      string // the run's id; its hash goes into the message id
	Instance int    // generator instance, 0 to MaxInstance
	Seq      int64  // from 0, dense within an instance, at most MaxSeq
}

// Bounds of an Identity, from the bits that the id has for it.
const (
	MaxInstance = 1<<12 - 1
	MaxSeq      = 1<<40 - 1
)

// ErrBadID is returned for text that is not a message id.
var ErrBadID = errors.New("not a message id")

// MessageID returns the id of a message: a UUID version 7 (RFC 9562, section 5.7) whose random bits are not random but
// the identity, so that the id is the same on every publish of the message and can be read back:
//
//	48 bits  unix milliseconds of scheduled
//	 4 bits  version 7
//	12 bits  instance
//	 2 bits  variant
//	22 bits  hash of the run id
//	40 bits  sequence
//
// Time comes first, so an index on the id is written at its right edge.
func (i Identity) MessageID(scheduled time.Time) string {
	ms := uint64(scheduled.UnixMilli())
	hi := ms<<16 | 0x7<<12 | uint64(i.Instance)&0xfff
	lo := 0b10<<62 | uint64(runTag(i.Run))<<40 | uint64(i.Seq)&MaxSeq
	return formatUUID(hi, lo)
}

// ParseMessageID reads the sequence and instance back from an id made by MessageID. It returns ErrBadID for anything
// that is not a version 7 UUID in canonical form.
func ParseMessageID(id string) (instance int, seq int64, err error) {
	hi, lo, ok := parseUUID(id)
	if !ok || hi>>12&0xf != 7 || lo>>62 != 0b10 {
		return 0, 0, ErrBadID
	}
	return int(hi & 0xfff), int64(lo & MaxSeq), nil
}

// DerivedID returns the id of an event caused by a message, the same on every attempt: a UUID version 8 (RFC 9562,
// section 5.8) over the message's id and the event's type.
func DerivedID(messageID, eventType string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(messageID))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(eventType))
	sum := h.Sum(nil)
	return formatUUID(asVersion8(be64(sum[:8]), be64(sum[8:])))
}

func runTag(run string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	return h.Sum32() & (1<<22 - 1)
}

func be64(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

func formatUUID(hi, lo uint64) string {
	text := uuidText(hi, lo)
	return string(text[:])
}

func uuidText(hi, lo uint64) (out [36]byte) {
	var raw [16]byte
	for i := range 8 {
		raw[i] = byte(hi >> (56 - 8*i))
		raw[8+i] = byte(lo >> (56 - 8*i))
	}
	hex.Encode(out[0:8], raw[0:4])
	out[8] = '-'
	hex.Encode(out[9:13], raw[4:6])
	out[13] = '-'
	hex.Encode(out[14:18], raw[6:8])
	out[18] = '-'
	hex.Encode(out[19:23], raw[8:10])
	out[23] = '-'
	hex.Encode(out[24:36], raw[10:16])
	return out
}

func parseUUID(s string) (hi, lo uint64, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return 0, 0, false
	}
	digits := 0
	for i := range len(s) {
		c := s[i]
		if c == '-' { // one at another place leaves too few digits
			continue
		}
		n, good := nibble(c)
		if !good {
			return 0, 0, false
		}
		if digits < 16 {
			hi = hi<<4 | n
		} else {
			lo = lo<<4 | n
		}
		digits++
	}
	return hi, lo, digits == 32
}

func nibble(c byte) (uint64, bool) {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0'), true
	case c >= 'a' && c <= 'f':
		return uint64(c-'a') + 10, true
	default:
		return 0, false
	}
}
