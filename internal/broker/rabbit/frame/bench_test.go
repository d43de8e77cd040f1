package frame_test

import (
	"testing"
	"time"

	"spillway/internal/broker/rabbit/frame"
)

func benchPublish() *frame.Publish {
	return &frame.Publish{
		Exchange: "orders", RoutingKey: "order.created", ContentType: "application/json", Type: "order.created",
		CorrelationID: "req-1234567", MessageID: "018f0000-0000-7000-8000-000000000000", Timestamp: time.Unix(1_767_225_600, 0),
		Headers: func(f *frame.Fields) {
			f.Text("x-run", "20260101-000000-abcdef")
			f.Integer("x-seq", 1234567)
			f.Integer("x-instance", 0)
			f.Integer("x-scheduled-at", 1767225600000000)
			f.Integer("x-sent-at", 1767225600000000)
			f.Text("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		},
		Body: make([]byte, 512),
	}
}

// BenchmarkAppendPublish writes the frames of a 512-byte message.
func BenchmarkAppendPublish(b *testing.B) {
	p := benchPublish()
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = frame.AppendPublish(out[:0], 1, 128<<10, p)
	}
	b.SetBytes(int64(len(out)))
}

// forgetful hears a table and keeps nothing.
type forgetful struct{}

func (forgetful) Text(string, string)   {}
func (forgetful) Integer(string, int64) {}

// BenchmarkContent reads the content header of the same message.
func BenchmarkContent(b *testing.B) {
	out := frame.AppendPublish(nil, 1, 128<<10, benchPublish())
	method, _, _ := frame.Split(out)
	header, _, _ := frame.Split(out[method.Size:])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := header.Content(forgetful{}); err != nil {
			b.Fatal(err)
		}
	}
}
