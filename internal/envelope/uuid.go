package envelope

import (
	"encoding/binary"
	"math/bits"
)

// UUID is an id as 16 bytes, for those who would otherwise write it as text to have it read again.
type UUID [16]byte

// ParseUUID reads an id in canonical form, in small letters. It reports false for any other text.
func ParseUUID(s string) (id UUID, ok bool) {
	hi, lo, ok := parseUUID(s)
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, ok
}

// Derived is DerivedID without texts, and without allocations.
func (id UUID) Derived(eventType string) (derived UUID) {
	text := uuidText(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
	h := newHash128()
	for _, c := range text {
		h.add(c)
	}
	h.add(0)
	for i := range len(eventType) {
		h.add(eventType[i])
	}
	hi, lo := asVersion8(h.hi, h.lo)
	binary.BigEndian.PutUint64(derived[:8], hi)
	binary.BigEndian.PutUint64(derived[8:], lo)
	return derived
}

// asVersion8 sets version and variant (RFC 9562, section 5.8).
func asVersion8(hi, lo uint64) (uint64, uint64) {
	return hi&^0xf000 | 0x8000, lo&^(0b11<<62) | 0b10<<62
}

// hash128 is FNV-1a with 128 bits, as in package hash/fnv, but on the stack.
type hash128 struct{ hi, lo uint64 }

// The offset basis and the prime of 128 bits, 2^88 + 2^8 + 0x3b.
const (
	basisHigh  = 0x6c62272e07bb0142
	basisLow   = 0x62b821756295c58d
	primeLow   = 0x13b
	primeShift = 24 // of the low half into the high one, for 2^88
)

func newHash128() hash128 { return hash128{basisHigh, basisLow} }

func (h *hash128) add(c byte) {
	x := h.lo ^ uint64(c)
	carry, low := bits.Mul64(primeLow, x)
	h.hi, h.lo = carry+x<<primeShift+primeLow*h.hi, low
}
