package rabbit

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/frame"
	"spillway/internal/envelope"
)

// taker makes deliveries of channel 1 as a consumer does.
type taker struct {
	incoming
	got []*broker.Delivery
}

func (t *taker) take(f *frame.Frame) (bool, error) { return t.incoming.take(f) }
func (t *taker) read(at time.Time)                 { t.got = append(t.got, t.batch(at)...) }

// deliver appends the frames of a delivery: those of a publish, with another method.
func deliver(dst []byte, channel uint16, tag uint64, body []byte) []byte {
	method := append([]byte{0, 60, 0, 60, 1, 'c'}, 0, 0, 0, 0, 0, 0, byte(tag>>8), byte(tag), 0)
	method = append(method, "\x06orders\x01k"...)
	dst = append(dst, 1, byte(channel>>8), byte(channel), 0, 0, 0, byte(len(method)))
	dst = append(append(dst, method...), 0xCE)
	headers := envelope.Headers{Run: "run", Seq: int64(tag)}
	published := frame.AppendPublish(nil, channel, 4096, &frame.Publish{
		MessageID: "m", Body: body, Headers: func(f *frame.Fields) { headers.Write(f) },
	})
	first, _, _ := frame.Split(published)
	return append(dst, published[first.Size:]...)
}

// TestTheHotChannelIsTakenOutOfTheStreamWhereverItIsCut sends a mixed stream in pieces of every size.
func TestTheHotChannelIsTakenOutOfTheStreamWhereverItIsCut(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	w := newWire(near, near)
	defer w.abort()
	w.opened.Store(1)
	hot := &taker{}
	if n := w.handOver(hot); n != 1 {
		t.Fatalf("the hot channel is %d", n)
	}
	const n = 200
	random := rand.New(rand.NewPCG(3, 4))
	var stream, others []byte
	bodies := map[uint64][]byte{}
	for tag := uint64(1); tag <= n; tag++ {
		body := bytes.Repeat([]byte{byte(tag)}, []int{0, 1, 512, 9000, 60_000}[min(random.IntN(40), 4)])
		bodies[tag] = body
		stream = deliver(stream, 1, tag, body)
		cold := append(bytes.Clone(heartbeat), deliver(nil, 2, tag, []byte("another channel"))...)
		stream, others = append(stream, cold...), append(others, cold...)
	}
	go func() {
		for len(stream) > 0 {
			piece := stream[:min(len(stream), 1+random.IntN(5000))]
			stream = stream[len(piece):]
			_, _ = far.Write(piece)
		}
		_ = far.Close()
	}()
	passed, _ := io.ReadAll(w)
	if !bytes.Equal(passed, others) {
		t.Errorf("%d bytes passed through, want %d, or they differ", len(passed), len(others))
	}
	if len(hot.got) != n {
		t.Fatalf("%d deliveries were taken, want %d", len(hot.got), n)
	}
	for i, d := range hot.got {
		tag := uint64(i + 1)
		if d.Tag != tag || d.Headers.Seq != int64(tag) || !bytes.Equal(d.Body, bodies[tag]) || d.RoutingKey != "k" || d.ReceivedAt.IsZero() {
			t.Fatalf("delivery %d is %+v with %d bytes, want %d", tag, d.Headers, len(d.Body), len(bodies[tag]))
		}
	}
}

func TestWhatIsNoAMQPPassesThroughUntilAChannelIsHot(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	w := newWire(near, near)
	defer w.abort()
	const greeting = "HTTP/1.1 400 Bad Request\r\n\r\n"
	_, _ = far.Write([]byte(greeting))
	_ = far.Close()
	if got, _ := io.ReadAll(w); string(got) != greeting {
		t.Errorf("read %q", got)
	}
}

func TestAStreamOutOfStepEndsTheConnection(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	w := newWire(near, near)
	w.opened.Store(1)
	w.handOver(&taker{})
	_, _ = far.Write([]byte{1, 0, 1, 0, 0, 0, 1, 'x', 'y'}) // no end octet
	if _, err := w.Read(make([]byte, 64)); err == nil {
		t.Error("it was taken for a frame")
	}
	if _, err := w.Write([]byte("z")); err == nil {
		t.Error("the writing side goes on")
	}
}

func TestTheNumberOfTheOpenedChannelIsSeen(t *testing.T) {
	t.Parallel()
	near, _ := tcpPair(t)
	w := newWire(near, near)
	defer w.abort()
	_, _ = w.Write([]byte{1, 0, 7, 0, 0, 0, 5, 0, 20, 0, 10, 0, 0xCE})
	_, _ = w.Write(heartbeat)
	if n := w.handOver(&taker{}); n != 7 {
		t.Errorf("channel %d, want 7", n)
	}
}
