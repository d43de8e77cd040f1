// Package frame writes and reads the few AMQP 0-9-1 frames of which a busy connection has thousands a second: basic.publish,
// basic.deliver, basic.return, basic.ack, basic.nack and basic.reject, with the content that follows them. Everything else
// (login, channels, declarations, heartbeats, closing) is the client library's.
//
// The package is pure: bytes in, values out. Readers take bytes from anyone and never panic; they are fuzzed. Layouts and
// numbers are those of the AMQP 0-9-1 specification, sections 2.3.5 and 4.2, and of RabbitMQ's list of field types
// (rabbitmq.com/amqp-0-9-1-errata, section 3).
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of a frame.
const (
	TypeMethod = 1
	TypeHeader = 2
	TypeBody   = 3
)

// Sizes on the wire, in bytes.
const (
	headSize = 7 // type, channel, payload size
	// Overhead is what a frame adds to its payload: the head, and the end octet.
	Overhead = headSize + 1
)

const (
	endOctet   = 0xCE
	classBasic = 60
)

// Methods of the class basic.
const (
	methodPublish = 40
	methodReturn  = 50
	methodDeliver = 60
	methodAck     = 80
	methodReject  = 90
	methodNack    = 120
)

// channel.open, see OpensChannel.
const (
	classChannel = 20
	methodOpen   = 10
)

// ErrMalformed is wrapped by every error of this package: the bytes are not what the specification says.
var ErrMalformed = errors.New("malformed AMQP frame")

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// Frame is one frame. Payload points into the bytes that it was split from.
type Frame struct {
	Type    byte
	Channel uint16
	Payload []byte
	Size    int // of the whole frame on the wire, head and end included
}

// Split returns the first frame of b. whole is false when b does not hold all of it; then Size says how many bytes are
// needed, or is 0 when not even that is known.
func Split(b []byte) (f Frame, whole bool, err error) {
	if len(b) < headSize {
		return Frame{}, false, nil
	}
	size := binary.BigEndian.Uint32(b[3:])
	if size > maxPayload {
		return Frame{}, false, malformed(fmt.Sprintf("a payload of %d bytes", size))
	}
	f = Frame{Type: b[0], Channel: binary.BigEndian.Uint16(b[1:]), Size: int(size) + Overhead}
	if len(b) < f.Size {
		return f, false, nil
	}
	if b[f.Size-1] != endOctet {
		return f, false, malformed("it does not end with the end octet")
	}
	f.Payload = b[headSize : f.Size-1]
	return f, true, nil
}

// maxPayload bounds a frame that Split waits for: far above any frame size that is agreed on (RabbitMQ's default is 128
// KiB), far below what a stream out of step would make it wait for.
const maxPayload = 16 << 20

// OpensChannel reports whether the frame asks for a new channel.
func (f *Frame) OpensChannel() bool { return f.is(classChannel, methodOpen) }

// is reports whether the frame is the given method.
func (f *Frame) is(class, method uint16) bool {
	return f.Type == TypeMethod && len(f.Payload) >= 4 &&
		binary.BigEndian.Uint16(f.Payload) == class && binary.BigEndian.Uint16(f.Payload[2:]) == method
}

// begin appends a frame's head with room for the size, and returns where the frame starts.
func begin(dst []byte, kind byte, channel uint16) (out []byte, start int) {
	start = len(dst)
	return append(dst, kind, byte(channel>>8), byte(channel), 0, 0, 0, 0), start
}

// end appends the end octet and fills the size in.
func end(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+3:], uint32(len(dst)-start-headSize))
	return append(dst, endOctet)
}

func appendMethod(dst []byte, method uint16) []byte {
	dst = binary.BigEndian.AppendUint16(dst, classBasic)
	return binary.BigEndian.AppendUint16(dst, method)
}

// maxShort is how many bytes a short string can have.
const maxShort = 255

// appendShort appends a short string, cut to what fits.
func appendShort(dst []byte, s string) []byte {
	if len(s) > maxShort {
		s = s[:maxShort]
	}
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}
