package publish_test

import (
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

// BenchmarkMake makes 512-byte messages.
func BenchmarkMake(b *testing.B) {
	f := publish.Factory{
		Base: timebase.New(), Run: "20260101-000000-abcdef", Seed: 7, Exchange: "orders", Size: draw.Fixed(512), SKUs: []string{"SKU-000001", "SKU-000002"},
		CountMin: 1, CountMax: 3,
	}
	var m broker.Message
	var body []byte
	b.ReportAllocs()
	for seq := int64(0); b.Loop(); seq++ {
		body = f.Make(&m, body, seq, time.Second, time.Second)
	}
}
