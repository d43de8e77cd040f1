package publish_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

var base = timebase.At(time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC))

func factory() *publish.Factory {
	keys, err := draw.UniformKeys(3)
	if err != nil {
		panic(err) // three keys are a good number
	}
	return &publish.Factory{
		Keys: keys,
		Base: base, Run: "run", Instance: 2, Seed: 7, Exchange: "orders", Size: draw.Fixed(600), SKUs: []string{"a", "b", "c"}, CountMin: 2, CountMax: 5,
	}
}

func makeOne(f *publish.Factory, seq int64) broker.Message {
	var m broker.Message
	f.Make(&m, nil, seq, time.Second, 2*time.Second)
	return m
}

func equal(a, b broker.Message) bool {
	same := bytes.Equal(a.Body, b.Body)
	a.Body, b.Body = nil, nil
	return same && a.MessageID == b.MessageID && a.Exchange == b.Exchange && a.RoutingKey == b.RoutingKey && a.Type == b.Type &&
		a.CorrelationID == b.CorrelationID && a.ContentType == b.ContentType && a.Timestamp.Equal(b.Timestamp) &&
		a.Expiration == b.Expiration && a.Headers == b.Headers
}

func TestAMessageIsAFunctionOfItsSequence(t *testing.T) {
	t.Parallel()
	f := factory()
	f.Bad = []publish.Bad{{Kind: publish.BadJSON, Share: 0.2}, {Kind: publish.EmptyID, Share: 0.2}}
	one, other := factory(), factory()
	one.Bad, other.Bad = f.Bad, f.Bad
	other.Seed = 8
	differ := 0
	for seq := range int64(200) {
		first := makeOne(f, seq)
		for range 2 {
			if !equal(first, makeOne(one, seq)) {
				t.Fatalf("message %d is another one the second time", seq)
			}
		}
		if !bytes.Equal(first.Body, makeOne(other, seq).Body) {
			differ++
		}
	}
	if differ < 100 {
		t.Errorf("another seed changed %d of 200 bodies only", differ)
	}
}

func TestAMessageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	f := factory()
	for seq := range int64(50) {
		m := makeOne(f, seq)
		o, err := envelope.Decode(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		instance, gotSeq, err := envelope.ParseMessageID(m.MessageID)
		if err != nil || instance != 2 || gotSeq != seq || o.ID != m.MessageID {
			t.Errorf("message %d: id %s of instance %d, seq %d, %v; the body's is %s", seq, m.MessageID, instance, gotSeq, err, o.ID)
		}
		want := envelope.Headers{
			Run: "run", Instance: 2, Seq: seq, ScheduledAt: base.Micros(time.Second), SentAt: base.Micros(2 * time.Second),
			TraceParent: m.Headers.TraceParent,
		}
		if m.Headers != want || m.Headers.Attempt() != 1 {
			t.Errorf("message %d: headers %+v, want %+v", seq, m.Headers, want)
		}
		if len(m.Body) != 600 || !o.OccurredAt.Equal(base.Wall(time.Second)) || !m.Timestamp.Equal(o.OccurredAt) {
			t.Errorf("message %d: %d bytes, occurred at %v, timestamp %v", seq, len(m.Body), o.OccurredAt, m.Timestamp)
		}
		if m.Exchange != "orders" || m.RoutingKey != "order.created" || m.Type != o.Type || m.CorrelationID != o.CorrelationID || m.Expiration != 0 {
			t.Errorf("message %d: %+v", seq, m)
		}
		if o.Data.Count < 2 || o.Data.Count > 5 {
			t.Errorf("message %d asks for %d units, want 2 to 5", seq, o.Data.Count)
		}
	}
}

func TestTheTraceParentIsValidAndItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seq := range int64(100) {
		got := makeOne(factory(), seq).Headers.TraceParent
		if len(got) != 55 || got[:3] != "00-" || got[52:] != "-01" || seen[got[36:52]] || got[36:52] == "0000000000000000" {
			t.Errorf("message %d: trace parent %q", seq, got)
		}
		seen[got[36:52]] = true
	}
}

func TestAllSKUsAndCountsAreDrawnEvenly(t *testing.T) {
	t.Parallel()
	f, skus, counts := factory(), map[string]int{}, map[int]int{}
	const n = 6000
	for seq := range int64(n) {
		o, err := envelope.Decode(makeOne(f, seq).Body)
		if err != nil {
			t.Fatal(err)
		}
		skus[o.Data.SKU]++
		counts[o.Data.Count]++
	}
	for _, sku := range f.SKUs {
		if got := float64(skus[sku]); math.Abs(got-n/3) > n/30 {
			t.Errorf("SKU %s was drawn %v times of %d", sku, got, n)
		}
	}
	for count := 2; count <= 5; count++ {
		if got := float64(counts[count]); math.Abs(got-n/4) > n/30 {
			t.Errorf("%d units were drawn %v times of %d", count, got, n)
		}
	}
}

func TestEachKindOfBadMessageIsRefusedForWhatItIs(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]error{
		publish.BadJSON: envelope.ErrBadJSON, publish.MissingField: envelope.ErrMissingField, publish.UnknownSchema: envelope.ErrUnknownSchema,
		publish.EmptyID: nil,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := factory()
			f.Bad = []publish.Bad{{Kind: kind, Share: 1}}
			m := makeOne(f, 3)
			if _, err := envelope.Decode(m.Body); !errors.Is(err, want) {
				t.Errorf("the body is refused with %v, want %v", err, want)
			}
			if empty := m.MessageID == ""; empty != (kind == publish.EmptyID) {
				t.Errorf("the message id is %q", m.MessageID)
			}
			if f.BadKind(3) != kind || m.Headers.Seq != 3 || len(m.Body) != 600 {
				t.Errorf("kind %q, seq %d, %d bytes", f.BadKind(3), m.Headers.Seq, len(m.Body))
			}
		})
	}
}

func TestSharesOfBadMessagesAreKept(t *testing.T) {
	t.Parallel()
	f := factory()
	f.Bad = []publish.Bad{{Kind: publish.BadJSON, Share: 0.1}, {Kind: publish.EmptyID, Share: 0.3}}
	got := map[string]int{}
	const n = 10_000
	for seq := range int64(n) {
		got[f.BadKind(seq)]++
	}
	for kind, share := range map[string]float64{publish.BadJSON: 0.1, publish.EmptyID: 0.3, "": 0.6} {
		if math.Abs(float64(got[kind])-share*n) > n/50 {
			t.Errorf("%d of %d are %q, want %.0f%%", got[kind], n, kind, 100*share)
		}
	}
	if kind := factory().BadKind(1); kind != "" {
		t.Errorf("without bad messages one is %q", kind)
	}
}

// TestABadMessageLeavesTheGoodOnesAlone: the draws of SKU and count must not move when bad messages are mixed in.
func TestAShareOfBadMessagesDoesNotChangeTheGoodOnes(t *testing.T) {
	t.Parallel()
	mixed := factory()
	mixed.Bad = []publish.Bad{{Kind: publish.BadJSON, Share: 0.5}}
	for seq := range int64(100) {
		if mixed.BadKind(seq) == "" && !equal(makeOne(mixed, seq), makeOne(factory(), seq)) {
			t.Fatalf("message %d differs", seq)
		}
	}
}

// TestTheScratchIsUsedAgain: a publisher makes millions of bodies in one buffer.
func TestTheScratchIsUsedAgain(t *testing.T) {
	t.Parallel()
	f := factory()
	var m broker.Message
	body := f.Make(&m, nil, 1, 0, 0)
	again := f.Make(&m, body, 2, 0, 0)
	if &body[0] != &again[0] || !equal(m, func() (n broker.Message) { f.Make(&n, nil, 2, 0, 0); return }()) {
		t.Error("the second message did not use the scratch, or is not the same as in a buffer of its own")
	}
}
