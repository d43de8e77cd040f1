package workers

import "testing"

// BenchmarkAcks takes and finishes deliveries a hundred at a time, in order.
func BenchmarkAcks(b *testing.B) {
	var a acks
	tag := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		tag++
		a.deliver(tag)
		a.finish(tag)
		if a.finished == 100 {
			a.prefix()
		}
	}
}
