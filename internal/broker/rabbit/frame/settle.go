package frame

import "encoding/binary"

// Flag bits of the settling methods.
const (
	flagMultiple    = 1 // of ack and nack
	flagRequeue     = 1 // of reject
	flagNackRequeue = 2 // of nack; bit 0 is multiple
)

// AppendAck appends a basic.ack.
func AppendAck(dst []byte, channel uint16, tag uint64, multiple bool) []byte {
	return appendSettle(dst, channel, methodAck, tag, flag(multiple, flagMultiple))
}

// AppendReject appends a basic.reject.
func AppendReject(dst []byte, channel uint16, tag uint64, requeue bool) []byte {
	return appendSettle(dst, channel, methodReject, tag, flag(requeue, flagRequeue))
}

// AppendNack appends a basic.nack of one delivery that goes back to its queue.
func AppendNack(dst []byte, channel uint16, tag uint64) []byte {
	return appendSettle(dst, channel, methodNack, tag, flagNackRequeue)
}

func appendSettle(dst []byte, channel, method uint16, tag uint64, flags byte) []byte {
	dst, start := begin(dst, TypeMethod, channel)
	dst = appendMethod(dst, method)
	dst = binary.BigEndian.AppendUint64(dst, tag)
	return end(append(dst, flags), start)
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// Kind says what a method frame means to us.
type Kind uint8

// Kinds of a method frame. Other is every method that this package leaves to the client library.
const (
	Other Kind = iota
	Ack
	Nack
	Return
	Deliver
)

// Kind returns what the frame is.
func (f *Frame) Kind() Kind {
	if f.Type != TypeMethod || len(f.Payload) < 4 || binary.BigEndian.Uint16(f.Payload) != classBasic {
		return Other
	}
	switch binary.BigEndian.Uint16(f.Payload[2:]) {
	case methodAck:
		return Ack
	case methodNack:
		return Nack
	case methodReturn:
		return Return
	case methodDeliver:
		return Deliver
	default:
		return Other
	}
}

// Answer reads an Ack or a Nack.
func (f *Frame) Answer() (tag uint64, multiple bool, err error) {
	if len(f.Payload) < 4+8+1 {
		return 0, false, malformed("an answer is cut short")
	}
	return binary.BigEndian.Uint64(f.Payload[4:]), f.Payload[12]&flagMultiple != 0, nil
}
