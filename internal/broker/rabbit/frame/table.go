package frame

import (
	"encoding/binary"
)

// Fields writes the entries of a table. It is a writer for envelope.Headers and whoever else has entries.
type Fields struct{ dst []byte }

// Text appends a string.
func (f *Fields) Text(key, value string) {
	f.dst = append(appendShort(f.dst, key), 'S')
	f.dst = binary.BigEndian.AppendUint32(f.dst, uint32(len(value)))
	f.dst = append(f.dst, value...)
}

// Integer appends a signed 64-bit integer.
func (f *Fields) Integer(key string, value int64) {
	f.dst = append(appendShort(f.dst, key), 'l')
	f.dst = binary.BigEndian.AppendUint64(f.dst, uint64(value))
}

// appendTable appends a table whose entries write writes.
func appendTable(dst []byte, write func(*Fields)) []byte {
	start := len(dst)
	f := Fields{append(dst, 0, 0, 0, 0)}
	write(&f)
	binary.BigEndian.PutUint32(f.dst[start:], uint32(len(f.dst)-start-4))
	return f.dst
}

// Sink hears the entries of a table that are text or whole numbers. Other types are passed over.
type Sink interface {
	Text(key, value string)
	Integer(key string, value int64)
}

// eachField tells sink of the entries of a table, given without its length.
func eachField(table string, sink Sink) error {
	r := fieldReader{reader[string]{rest: table}}
	for len(r.rest) > 0 && r.err == nil {
		key := r.short()
		r.field(key, sink)
	}
	return r.err
}

type fieldReader struct{ reader[string] }

// field reads one value.
func (r *fieldReader) field(key string, sink Sink) {
	switch kind := r.octet(); kind {
	case 'S', 'x':
		if text := r.long(); r.err == nil {
			sink.Text(key, text)
		}
	case 'A', 'F':
		r.long()
	case 't', 'V', 'f', 'd', 'D':
		r.skip(width(kind))
	default:
		r.number(kind, key, sink)
	}
}

// number reads a whole number; a timestamp is one of seconds, told in microseconds.
func (r *fieldReader) number(kind byte, key string, sink Sink) {
	n := width(kind)
	if n == 0 {
		r.fail("a field of unknown type")
		return
	}
	raw := r.uint(n)
	if r.err != nil {
		return
	}
	switch kind {
	case 'b':
		raw = uint64(int64(int8(raw)))
	case 's':
		raw = uint64(int64(int16(raw)))
	case 'I':
		raw = uint64(int64(int32(raw)))
	case 'T':
		raw *= 1_000_000
	}
	sink.Integer(key, int64(raw))
}

// width returns the bytes that a value of fixed size takes, 0 for every other kind and for none.
func width(kind byte) int {
	switch kind {
	case 't', 'b', 'B':
		return 1
	case 's', 'u':
		return 2
	case 'I', 'i', 'f':
		return 4
	case 'D': // scale and value of a decimal
		return 5
	case 'l', 'L', 'T', 'd':
		return 8
	default: // 'V' among them, which has no value
		return 0
	}
}
