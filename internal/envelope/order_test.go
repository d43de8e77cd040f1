package envelope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"spillway/internal/envelope"
)

func order() envelope.Order {
	return envelope.Order{
		ID: "id-1", Type: envelope.TypeOrderCreated, SchemaVersion: envelope.SchemaVersion, OccurredAt: moment, Producer: "p",
		CorrelationID: "req-1", CausationID: "cmd-1", Aggregate: envelope.Aggregate{Type: "order", ID: "order-1", Version: 1},
		Data: envelope.Data{SKU: "SKU-000001", Count: 3},
	}
}

func TestABodyIsPaddedToExactlyTheSizeAndAlwaysDecodes(t *testing.T) {
	t.Parallel()
	o := order()
	least := len(o.AppendJSON(nil, 0))
	for size := least; size < least+100; size++ {
		body := o.AppendJSON([]byte("kept"), size)
		if string(body[:4]) != "kept" {
			t.Fatalf("size %d: what was there is gone: %q", size, body)
		}
		body = body[4:]
		if len(body) != size {
			t.Fatalf("asked for %d bytes, got %d: %s", size, len(body), body)
		}
		if got, err := envelope.Decode(body); err != nil || got != o {
			t.Fatalf("size %d: decoded %+v, %v; want %+v", size, got, err, o)
		}
	}
	if body := o.AppendJSON(nil, least-1); len(body) != least {
		t.Errorf("a size below the body made %d bytes, want the body's own %d", len(body), least)
	}
}

// TestHostileStringsAreQuoted compares with encoding/json: both must read what this writes.
func TestHostileStringsAreQuoted(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{
		`"`, `\`, `\"`, "\x00", "\n\t\r", "</script>", "&", "ä€😀", "\u2028\u2029", "\xff\xfe", "\x7f", `","id":"other`, strings.Repeat(`"`, 300),
	} {
		o := order()
		o.ID, o.Producer, o.CorrelationID, o.Aggregate.Type, o.Data.SKU = hostile, hostile, hostile, hostile, hostile
		body := o.AppendJSON(nil, 8192)
		if len(body) != 8192 {
			t.Errorf("%q: %d bytes, want 8192", hostile, len(body))
		}
		if !utf8.Valid(body) {
			t.Errorf("%q: the body is no UTF-8: %q", hostile, body)
		}
		var got envelope.Order
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("%q: %v in %s", hostile, err, body)
		}
		if want := strings.ToValidUTF8(hostile, "\ufffd"); got.ID != want && hostile != "\xff\xfe" || got.Data.SKU != got.ID || got.Producer != got.ID {
			t.Errorf("%q came back as %q", hostile, got.ID)
		}
	}
}

// TestMinSizeHoldsTheLongestBodyOfTheProject takes the longest that a profile can ask for: ids are 36 bytes, the last
// sequence has 13 digits, SKUs are numbered to a million and counts go to a million.
func TestMinSizeHoldsTheLongestBodyOfTheProject(t *testing.T) {
	t.Parallel()
	number := fmt.Sprint(envelope.MaxSeq)
	o := envelope.Order{
		ID:   envelope.Identity{Run: "r", Instance: envelope.MaxInstance, Seq: envelope.MaxSeq}.MessageID(moment),
		Type: envelope.TypeOrderCreated, SchemaVersion: math.MaxInt16, OccurredAt: moment, Producer: "spillway-loadgen",
		CorrelationID: "req-" + number, CausationID: "cmd-" + number,
		Aggregate: envelope.Aggregate{Type: "order", ID: "order-" + number, Version: math.MaxInt64},
		Data:      envelope.Data{SKU: "SKU-1000000", Count: 1_000_000},
	}
	if n := len(o.AppendJSON(nil, 0)); n > envelope.MinSize {
		t.Errorf("the longest body has %d bytes, more than MinSize, %d", n, envelope.MinSize)
	}
	if n := len(o.AppendJSON(nil, envelope.MinSize)); n != envelope.MinSize {
		t.Errorf("the longest body padded to MinSize has %d bytes", n)
	}
}

func TestABodyInAnotherZoneKeepsItsInstant(t *testing.T) {
	t.Parallel()
	o := order()
	o.OccurredAt = moment.In(time.FixedZone("elsewhere", 5*3600+1800))
	got, err := envelope.Decode(o.AppendJSON(nil, 512))
	if err != nil || got.OccurredAt != moment { // the instant, in UTC
		t.Errorf("occurred at %v, %v; want %v", got.OccurredAt, err, moment)
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	spoilt := func(change func(*envelope.Order)) string {
		o := order()
		change(&o)
		return string(o.AppendJSON(nil, 0))
	}
	for name, row := range map[string]struct {
		body string
		want error
	}{
		"nothing at all":                         {"", envelope.ErrBadJSON},
		"an open brace":                          {"{", envelope.ErrBadJSON},
		"a list":                                 {"[]", envelope.ErrBadJSON},
		"a field of another type":                {`{"schema_version":"one"}`, envelope.ErrBadJSON},
		"a fraction of a unit":                   {`{"schema_version":1,"data":{"count":1.5}}`, envelope.ErrBadJSON},
		"a time that is none":                    {`{"schema_version":1,"occurred_at":"yesterday"}`, envelope.ErrBadJSON},
		"two values":                             {spoilt(func(*envelope.Order) {}) + "{}", envelope.ErrBadJSON},
		"an empty object":                        {"{}", envelope.ErrMissingField},
		"null":                                   {"null", envelope.ErrMissingField},
		"no schema version":                      {spoilt(func(o *envelope.Order) { o.SchemaVersion = 0 }), envelope.ErrMissingField},
		"no id":                                  {spoilt(func(o *envelope.Order) { o.ID = "" }), envelope.ErrMissingField},
		"no type":                                {spoilt(func(o *envelope.Order) { o.Type = "" }), envelope.ErrMissingField},
		"no time":                                {spoilt(func(o *envelope.Order) { o.OccurredAt = time.Time{} }), envelope.ErrMissingField},
		"no aggregate":                           {spoilt(func(o *envelope.Order) { o.Aggregate.ID = "" }), envelope.ErrMissingField},
		"no SKU":                                 {spoilt(func(o *envelope.Order) { o.Data.SKU = "" }), envelope.ErrMissingField},
		"no units":                               {spoilt(func(o *envelope.Order) { o.Data.Count = 0 }), envelope.ErrMissingField},
		"negative units":                         {spoilt(func(o *envelope.Order) { o.Data.Count = -1 }), envelope.ErrMissingField},
		"a later schema":                         {spoilt(func(o *envelope.Order) { o.SchemaVersion = 2 }), envelope.ErrUnknownSchema},
		"a negative schema":                      {spoilt(func(o *envelope.Order) { o.SchemaVersion = -1 }), envelope.ErrUnknownSchema},
		"a later schema that has other fields":   {`{"schema_version":99,"other":true}`, envelope.ErrUnknownSchema},
		"a sound one":                            {spoilt(func(*envelope.Order) {}), nil},
		"a sound one without what is optional":   {spoilt(func(o *envelope.Order) { o.Producer, o.CausationID = "", "" }), nil},
		"a sound one with a field of the future": {strings.Replace(spoilt(func(*envelope.Order) {}), "{", `{"new":[1],`, 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := envelope.Decode([]byte(row.body))
			if !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

func TestWhatCouldBeReadComesWithTheError(t *testing.T) {
	t.Parallel()
	o := order()
	o.SchemaVersion = 99
	got, err := envelope.Decode(o.AppendJSON(nil, 512))
	if !errors.Is(err, envelope.ErrUnknownSchema) || got.SchemaVersion != 99 || got.Producer != "p" {
		t.Errorf("read %+v, %v; want schema version 99 of producer p", got, err)
	}
	got, err = envelope.Decode([]byte(`{"id":"half","schema_version":"x"}`))
	if !errors.Is(err, envelope.ErrBadJSON) || got != (envelope.Order{}) {
		t.Errorf("read %+v, %v of bad JSON; want nothing", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	o := order()
	f.Add(o.AppendJSON(nil, 512))
	f.Add([]byte(`{"schema_version":99}`))
	f.Add([]byte(`{"schema_version":1,"data":{"count":-1}}`))
	f.Add([]byte("[\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := envelope.Decode(body)
		switch {
		case err == nil && got.OccurredAt.UTC().Year() > 9999: // RFC 3339 has no such year; this build writes none
			return
		case err == nil:
		case errors.Is(err, envelope.ErrBadJSON), errors.Is(err, envelope.ErrMissingField), errors.Is(err, envelope.ErrUnknownSchema):
			return
		default:
			t.Fatalf("an error of no kind: %v", err)
		}
		again, err := envelope.Decode(got.AppendJSON(nil, 2048))
		if err != nil || !again.OccurredAt.Equal(got.OccurredAt) {
			t.Fatalf("%+v was read, but written again it reads as %+v, %v", got, again, err)
		}
		again.OccurredAt = got.OccurredAt
		if again != got {
			t.Fatalf("%+v was read, but written again it reads as %+v", got, again)
		}
	})
}
