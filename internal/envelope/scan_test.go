package envelope

import (
	"encoding/json"
	"testing"
	"time"
)

func sample() []byte {
	o := Order{
		ID: "018f0000-0000-7000-8000-000000000001", Type: TypeOrderCreated, SchemaVersion: 1, OccurredAt: time.Unix(1_767_225_600, 123_456_000),
		Producer: "spillway-loadgen", CorrelationID: "req-1", CausationID: "cmd-1", Aggregate: Aggregate{Type: "order", ID: "order-1", Version: 1},
		Data: Data{SKU: "sku-1", Count: 2},
	}
	return o.AppendJSON(nil, 512)
}

func TestTheShortcutReadsWhatThisBuildWrites(t *testing.T) {
	t.Parallel()
	var want Order
	if err := json.Unmarshal(sample(), &want); err != nil {
		t.Fatal(err)
	}
	got, ok := scan(sample())
	if !ok || got != want {
		t.Errorf("ok %v, got %+v\nwant %+v", ok, got, want)
	}
}

func TestTheShortcutLeavesToTheLibraryWhatItIsNotSureOf(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an escape":                     `{"id":"a\u0062"}`,
		"a byte outside ASCII":          `{"id":"ä"}`,
		"another case":                  `{"ID":"a"}`,
		"an unknown name":               `{"extra":1}`,
		"a fraction":                    `{"schema_version":1.5}`,
		"an exponent":                   `{"schema_version":1e0}`,
		"a leading zero":                `{"schema_version":01}`,
		"a negative number":             `{"schema_version":-1}`,
		"a number too large to be sure": `{"schema_version":1000000000000000000}`,
		"a null":                        `{"id":null}`,
		"a comma too many":              `{"id":"a",}`,
		"a comma too few":               `{"id":"a" "type":"b"}`,
		"something behind it":           `{"id":"a"} x`,
		"a time that is none":           `{"occurred_at":"yesterday"}`,
		"nothing":                       ``,
		"half of it":                    `{"id":"a"`,
		"a number cut off":              `{"schema_version":1`,
	} {
		if o, ok := scan([]byte(body)); ok {
			t.Errorf("%s: read as %+v", name, o)
		}
	}
}

// FuzzScan holds the shortcut against encoding/json: what it reads, that reads the same.
func FuzzScan(f *testing.F) {
	f.Add(sample())
	f.Add([]byte(` { "id" : "a" , "data":{ } ,"aggregate":{"version":12},"schema_version": 0 } `))
	f.Add([]byte(`{"id":"a","id":"b","data":{"sku":"x"},"data":{"count":3}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := scan(body)
		if !ok {
			return
		}
		var want Order
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("%q was read as %+v, encoding/json says %v", body, got, err)
		}
		if !got.OccurredAt.Equal(want.OccurredAt) {
			t.Fatalf("%q: %v, encoding/json says %v", body, got.OccurredAt, want.OccurredAt)
		}
		if got.OccurredAt = want.OccurredAt; got != want {
			t.Fatalf("%q was read as %+v, encoding/json says %+v", body, got, want)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := sample()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(body); err != nil {
			b.Fatal(err)
		}
	}
}
