package rabbit

import (
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/frame"
	"spillway/internal/envelope"
)

// incoming makes deliveries of frames. It belongs to the goroutine that reads the wire.
type incoming struct {
	names    frame.Names
	open     *broker.Delivery // its content is still being read; nil when none is
	left     uint64           // bytes of its body that are to come
	begun    bool             // its header was read
	finished []*broker.Delivery
	store    store
}

// take adds a frame of the channel. It reports false for one that is not part of a delivery.
func (in *incoming) take(f *frame.Frame) (bool, error) {
	switch {
	case f.Kind() == frame.Deliver:
		return true, in.begin(f)
	case in.open == nil || f.Type == frame.TypeMethod:
		return false, nil
	case f.Type == frame.TypeHeader:
		return true, in.header(f)
	default:
		in.body(f.Payload)
		return true, nil
	}
}

func (in *incoming) begin(f *frame.Frame) error {
	route, err := f.Delivery(&in.names)
	if err != nil {
		return err
	}
	in.open, in.begun = in.store.delivery(), false
	in.open.Tag, in.open.Redelivered = route.Tag, route.Redelivered
	in.open.Exchange, in.open.RoutingKey = route.Exchange, route.RoutingKey
	return nil
}

func (in *incoming) header(f *frame.Frame) error {
	var headers envelope.HeaderReader
	h, err := f.Content(&headers)
	if err != nil {
		return err
	}
	d := in.open
	d.Headers, d.DeliveryCount, d.AcquiredCount = headers.Headers(), headers.DeliveryCount, headers.AcquiredCount
	d.MessageID, d.CorrelationID, d.Type, d.ContentType = h.MessageID, h.CorrelationID, h.Type, h.ContentType
	d.Timestamp, d.Expiration = h.Timestamp, h.Expiration
	d.Body = in.store.body(h.Size)
	in.left, in.begun = h.Size, true
	in.finish()
	return nil
}

func (in *incoming) body(part []byte) {
	in.open.Body = append(in.open.Body, part...)
	in.left -= min(in.left, uint64(len(part)))
	in.finish()
}

// finish puts the delivery away once it is whole.
func (in *incoming) finish() {
	if in.begun && in.left == 0 {
		in.finished = append(in.finished, in.open)
		in.open = nil
	}
}

// batch returns what has become whole since the last call, nil for nothing.
func (in *incoming) batch(at time.Time) []*broker.Delivery {
	if len(in.finished) == 0 {
		return nil
	}
	for _, d := range in.finished {
		d.ReceivedAt = at
	}
	out := in.finished
	in.finished = make([]*broker.Delivery, 0, len(out))
	return out
}

// store hands out room for deliveries and bodies, cut from larger pieces: an allocation for several of them instead of one
// for each. A piece is freed when everything in it is done with, so one slow message holds up to a piece of each.
type store struct {
	deliveries []broker.Delivery
	bytes      []byte
}

const (
	deliveriesPiece = 16
	bytesPiece      = 16 << 10
	// largestCut is the size from which a body gets room of its own, and the most that is taken on a header's word: room for
	// more is made as it comes.
	largestCut  = bytesPiece / 4
	largestHint = 1 << 20
)

func (s *store) delivery() *broker.Delivery {
	if len(s.deliveries) == 0 {
		s.deliveries = make([]broker.Delivery, deliveriesPiece)
	}
	d := &s.deliveries[0]
	s.deliveries = s.deliveries[1:]
	return d
}

func (s *store) body(size uint64) []byte {
	if size > largestCut {
		return make([]byte, 0, min(size, largestHint))
	}
	n := int(size)
	if len(s.bytes) < n {
		s.bytes = make([]byte, bytesPiece)
	}
	room := s.bytes[:0:n] // of no more capacity, so that an append cannot reach a neighbour
	s.bytes = s.bytes[n:]
	return room
}
