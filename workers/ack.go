package workers

import "context"

// Ack is when a worker acks a delivery. Only the zero value keeps the promise of rule 3; the others are there to show what they
// lose when a worker dies.
type Ack uint8

// The points of an ack.
const (
	// AckAfterCommit acks once the effect is committed, or the broker has taken the copy that replaces the delivery.
	AckAfterCommit Ack = iota
	// AckBeforeCommit acks when all is done but the COMMIT.
	AckBeforeCommit
	// AckOnDelivery acks before the handler begins.
	AckOnDelivery
	// AckAuto lets the broker count a delivery as settled as soon as it is written to the socket.
	AckAuto
)

// Point is a moment in the life of a delivery at which one side has acted and the other does not know of it.
type Point string

// The points at which a worker may be killed.
const (
	// BeforeCommit: claim and effect lie in an open transaction.
	BeforeCommit Point = "before-commit"
	// AfterCommit: the effect is committed, the delivery not acked.
	AfterCommit Point = "after-commit"
	// AfterRetry: the broker has confirmed the copy in a tier, the original is not acked.
	AfterRetry Point = "after-retry"
)

// reached tells whoever wants to know that a delivery has come to a point.
func (s *Service) reached(p Point, seq int64) {
	if s.cfg.Reached != nil {
		s.cfg.Reached(p, seq)
	}
}

// early is a handler's wish to have its delivery acked now.
type early struct {
	tag  uint64
	done chan struct{}
}

// ackNow has the owner of the channel ack a delivery, and returns when that is written, or can not be.
func (s *session) ackNow(channel context.Context, tag uint64) {
	wish := early{tag, make(chan struct{})}
	select {
	case s.early <- wish:
	case <-channel.Done():
		return
	}
	select {
	case <-wish.done:
	case <-channel.Done():
	}
}

// grant carries such a wish out.
func (s *session) grant(wish early) {
	if s.acks.remove(wish.tag) {
		s.ack(wish.tag, false, 1)
	}
	close(wish.done)
}
