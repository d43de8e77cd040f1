package frame_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"spillway/internal/broker/rabbit/frame"
)

// bag collects what a table says.
type bag map[string]any

func (b bag) Text(key, value string)          { b[key] = value }
func (b bag) Integer(key string, value int64) { b[key] = value }

// split cuts a stream into its frames and fails on a rest.
func split(t *testing.T, b []byte) (all []frame.Frame) {
	t.Helper()
	for len(b) > 0 {
		f, whole, err := frame.Split(b)
		if err != nil || !whole {
			t.Fatalf("%d bytes are left: whole %v, %v", len(b), whole, err)
		}
		all = append(all, f)
		b = b[f.Size:]
	}
	return all
}

func TestAPublishReadsBackAsItsContent(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("spill"), 1000)
	p := frame.Publish{
		Exchange: "orders", RoutingKey: "order.created", ContentType: "application/json", CorrelationID: "c", MessageID: "m", Type: "t",
		Timestamp: time.Unix(1_800_000_000, 0), Expiration: 1500 * time.Millisecond, Body: body,
		Headers: func(f *frame.Fields) {
			f.Text("x-run", "a run")
			f.Integer("x-seq", -7)
		},
	}
	frames := split(t, frame.AppendPublish(nil, 3, 2048, &p))
	if len(frames) != 5 {
		t.Fatalf("%d frames, want a method, a header and three bodies", len(frames))
	}
	var got []byte
	for _, f := range frames[2:] {
		if f.Type != frame.TypeBody || f.Channel != 3 || f.Size > 2048 {
			t.Errorf("a body frame is %d on channel %d of %d bytes", f.Type, f.Channel, f.Size)
		}
		got = append(got, f.Payload...)
	}
	if !bytes.Equal(got, body) {
		t.Error("the body differs")
	}
	headers := bag{}
	h, err := frames[1].Content(headers)
	want := frame.Header{
		Size: 5000, ContentType: "application/json", CorrelationID: "c", MessageID: "m", Type: "t", Timestamp: p.Timestamp, Expiration: p.Expiration,
	}
	if err != nil || h != want {
		t.Errorf("read %+v (%v), want %+v", h, err, want)
	}
	if !maps.Equal(headers, bag{"x-run": "a run", "x-seq": int64(-7)}) {
		t.Errorf("the headers are %v", headers)
	}
}

func TestEmptyPropertiesAreLeftOut(t *testing.T) {
	t.Parallel()
	frames := split(t, frame.AppendPublish(nil, 1, 4096, &frame.Publish{}))
	if len(frames) != 2 || len(frames[1].Payload) != 2+2+8+2+1 {
		t.Fatalf("%d frames, the header has %d bytes", len(frames), len(frames[1].Payload))
	}
	if h, err := frames[1].Content(bag{}); err != nil || h != (frame.Header{}) {
		t.Errorf("read %+v (%v)", h, err)
	}
}

func TestALongNameIsCutRatherThanCorruptingTheStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	frames := split(t, frame.AppendPublish(nil, 1, 4096, &frame.Publish{MessageID: long}))
	if h, err := frames[1].Content(bag{}); err != nil || h.MessageID != long[:255] {
		t.Errorf("an id of %d bytes (%v)", len(h.MessageID), err)
	}
}

// raw is a method frame with the given payload.
func raw(payload ...byte) []byte {
	out := []byte{1, 0, 1, 0, 0, 0, byte(len(payload))}
	return append(append(out, payload...), 0xCE)
}

func TestAnswersAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method byte
		flags  byte
		kind   frame.Kind
		many   bool
	}{
		"one ack":    {80, 0, frame.Ack, false},
		"many acks":  {80, 1, frame.Ack, true},
		"one nack":   {120, 0, frame.Nack, false},
		"many nacks": {120, 3, frame.Nack, true},
	} {
		f := split(t, raw(0, 60, 0, c.method, 0, 0, 0, 0, 0, 1, 0, 2, c.flags))[0]
		tag, many, err := f.Answer()
		if f.Kind() != c.kind || tag != 65538 || many != c.many || err != nil {
			t.Errorf("%s: kind %d, tag %d, multiple %v, %v", name, f.Kind(), tag, many, err)
		}
	}
	if f := split(t, raw(0, 60, 0, 80, 1))[0]; f.Kind() == frame.Ack {
		if _, _, err := f.Answer(); !errors.Is(err, frame.ErrMalformed) {
			t.Errorf("a short answer: %v", err)
		}
	}
}

func TestOurSettlementsAreTheBrokersAnswersTheOtherWayRound(t *testing.T) {
	t.Parallel()
	f := split(t, frame.AppendAck(nil, 1, 77, true))[0]
	if tag, many, err := f.Answer(); f.Kind() != frame.Ack || tag != 77 || !many || err != nil {
		t.Errorf("ack: %d %v %v", tag, many, err)
	}
	reject := split(t, frame.AppendReject(nil, 1, 9, true))[0]
	if want := []byte{0, 60, 0, 90, 0, 0, 0, 0, 0, 0, 0, 9, 1}; !bytes.Equal(reject.Payload, want) {
		t.Errorf("reject: % x", reject.Payload)
	}
	nack := split(t, frame.AppendNack(nil, 1, 9))[0]
	if want := []byte{0, 60, 0, 120, 0, 0, 0, 0, 0, 0, 0, 9, 2}; !bytes.Equal(nack.Payload, want) {
		t.Errorf("nack: % x", nack.Payload)
	}
}

func TestRoutesAreRead(t *testing.T) {
	t.Parallel()
	var names frame.Names
	deliver := raw(append([]byte{0, 60, 0, 60, 1, 'c', 0, 0, 0, 0, 0, 0, 0, 5, 1}, "\x06orders\x01k"...)...)
	got, err := split(t, deliver)[0].Delivery(&names)
	if want := (frame.Route{Tag: 5, Redelivered: true, Exchange: "orders", RoutingKey: "k"}); err != nil || got != want {
		t.Errorf("delivery: %+v (%v)", got, err)
	}
	returned := raw(append([]byte{0, 60, 0, 50, 1, 56}, "\x08NO_ROUTE\x06orders\x01q"...)...)
	got, err = split(t, returned)[0].Returned(&names)
	if want := (frame.Route{Code: 312, Text: "NO_ROUTE", Exchange: "orders", RoutingKey: "q"}); err != nil || got != want {
		t.Errorf("return: %+v (%v)", got, err)
	}
}

func TestEveryTypeOfFieldIsReadOrPassedOver(t *testing.T) {
	t.Parallel()
	table := "\x01bb\xff" + "\x01BB\xff" + "\x01ss\xff\xfe" + "\x01uu\xff\xfe" + "\x01iI\xff\xff\xff\xfd" + "\x01ji\xff\xff\xff\xfd" +
		"\x01ll\x00\x00\x00\x00\x00\x00\x01\x00" + "\x01TT\x00\x00\x00\x00\x00\x00\x00\x02" + "\x01SS\x00\x00\x00\x02hi" + "\x01xx\x00\x00\x00\x01y" +
		"\x01tt\x01" + "\x01VV" + "\x01ff\x00\x00\x00\x00" + "\x01dd\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01DD\x00\x00\x00\x00\x00" +
		"\x01AA\x00\x00\x00\x02t\x01" + "\x01FF\x00\x00\x00\x04\x01kt\x00" + "\x01zB\x09"
	header := append([]byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, byte(len(table))}, table...)
	f := frame.Frame{Type: frame.TypeHeader, Payload: header}
	got := bag{}
	if _, err := f.Content(got); err != nil {
		t.Fatal(err)
	}
	want := bag{
		"b": int64(-1), "B": int64(255), "s": int64(-2), "u": int64(65534), "i": int64(-3), "j": int64(4294967293), "l": int64(256),
		"T": int64(2_000_000), "S": "hi", "x": "y", "z": int64(9),
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestWhatIsNotAFrameIsSaidSo(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string][]byte{
		"no end octet": {1, 0, 1, 0, 0, 0, 0, 0},
		"a huge size":  {1, 0, 1, 0xff, 0, 0, 0, 0},
		"a greeting":   []byte("AMQP\x00\x00\x09\x01 and more of it"),
	} {
		if _, whole, err := frame.Split(bytes); whole || (name != "a greeting" && !errors.Is(err, frame.ErrMalformed)) {
			t.Errorf("%s: whole %v, %v", name, whole, err)
		}
	}
	for i := range 13 {
		if _, whole, err := frame.Split(raw(0, 60, 0, 80, 1)[:min(i, 12)]); whole || err != nil {
			t.Errorf("%d bytes: whole %v, %v", i, whole, err)
		}
	}
}

// FuzzFrame reads whatever comes, as every kind of frame.
func FuzzFrame(f *testing.F) {
	f.Add(frame.AppendPublish(nil, 1, 4096, &frame.Publish{MessageID: "m", Headers: func(f *frame.Fields) { f.Text("k", "v") }, Body: []byte("b")}))
	f.Add(frame.AppendAck(nil, 1, 1, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		var names frame.Names
		for len(b) > 0 {
			one, whole, err := frame.Split(b)
			if err != nil || !whole {
				return
			}
			switch one.Kind() {
			case frame.Ack, frame.Nack:
				_, _, err = one.Answer()
			case frame.Deliver:
				_, err = one.Delivery(&names)
			case frame.Return:
				_, err = one.Returned(&names)
			default:
				_, err = one.Content(bag{})
			}
			if err != nil && !errors.Is(err, frame.ErrMalformed) {
				t.Fatalf("an error of another kind: %v", err)
			}
			b = b[one.Size:]
		}
	})
}
