package envelope_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"spillway/internal/envelope"
)

// entries is a table of a client library, written by Headers.
type entries map[string]any

func (e entries) Text(key, value string)          { e[key] = value }
func (e entries) Integer(key string, value int64) { e[key] = value }

func table(h *envelope.Headers) map[string]any {
	out := entries{}
	h.Write(out)
	return out
}

func full() envelope.Headers {
	return envelope.Headers{
		Run: "run", Instance: 4, Seq: 5, ScheduledAt: 6, SentAt: 7, Retries: 8, TraceParent: "00-a-b-01", RedrivenAt: 9, Deadline: 10,
		RetriedAt: 11, RetryDelay: 12,
		Failure: envelope.Failure{
			Class: "transient", LastError: "went wrong", FirstFailedAt: 13, OriginalExchange: "orders", OriginalRoutingKey: "order.created",
			SchemaVersion: 14, Producer: "p", WorkerVersion: "w",
		},
	}
}

func TestHeadersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]envelope.Headers{
		"all of them":         full(),
		"none":                {Seq: envelope.NoSeq},
		"the first sequence":  {Seq: 0},
		"a first delivery":    {Run: "run", Seq: 1, ScheduledAt: 2, SentAt: 3},
		"a failure of a kind": {Seq: envelope.NoSeq, Failure: envelope.Failure{Class: "permanent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := envelope.ParseHeaders(table(&want)); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestEveryHeaderIsWritten sets every field: one that Write forgets is missed here.
func TestEveryHeaderIsWritten(t *testing.T) {
	t.Parallel()
	h := full()
	fields := reflect.TypeFor[envelope.Headers]().NumField() - 1 + reflect.TypeFor[envelope.Failure]().NumField()
	if got := table(&h); len(got) != fields {
		t.Errorf("%d headers of %d fields: %v", len(got), fields, got)
	}
}

func TestAbsentHeadersAreLeftOut(t *testing.T) {
	t.Parallel()
	h := envelope.Headers{Seq: envelope.NoSeq}
	if got := table(&h); len(got) != 0 {
		t.Errorf("headers of nothing: %v", got)
	}
	if got := envelope.ParseHeaders(nil); got != h || got.Attempt() != 1 {
		t.Errorf("no table was read as %+v, attempt %d", got, got.Attempt())
	}
}

func TestValuesOfAWrongTypeCountAsAbsent(t *testing.T) {
	t.Parallel()
	wrong := map[string]any{}
	h := full()
	for key, value := range table(&h) {
		if _, text := value.(string); text {
			wrong[key] = int64(1)
		} else {
			wrong[key] = "1"
		}
	}
	if got := envelope.ParseHeaders(wrong); got != (envelope.Headers{Seq: envelope.NoSeq}) {
		t.Errorf("wrong types were read as %+v", got)
	}
	for _, value := range []any{nil, true, 1.5, float32(2), []any{1}, map[string]any{}, struct{}{}} {
		got := envelope.ParseHeaders(map[string]any{"x-seq": value, "x-run": value, "x-retry-attempt": value})
		if got != (envelope.Headers{Seq: envelope.NoSeq}) {
			t.Errorf("%T was read as %+v", value, got)
		}
	}
}

func TestIntegersOfEveryWidthAreRead(t *testing.T) {
	t.Parallel()
	for _, value := range []any{int(7), int8(7), int16(7), int32(7), int64(7), uint8(7), uint16(7), uint32(7)} {
		if got := envelope.ParseHeaders(map[string]any{"x-seq": value}); got.Seq != 7 {
			t.Errorf("%T 7 was read as %d", value, got.Seq)
		}
	}
	if got := envelope.ParseHeaders(map[string]any{"x-sent-at": time.UnixMicro(5)}); got.SentAt != 5 {
		t.Errorf("a timestamp was read as %d", got.SentAt)
	}
	if got := envelope.ParseHeaders(map[string]any{"x-run": []byte("run")}); got.Run != "run" {
		t.Errorf("bytes were read as %q", got.Run)
	}
}

func TestTheAttemptIsOneMoreThanTheRetriesAndNeverBelowOne(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int64]int{0: 1, 1: 2, 7: 8, -1: 1, math.MinInt64: 1, math.MaxInt64: 1<<31 - 1} {
		h := envelope.ParseHeaders(map[string]any{"x-retry-attempt": retries})
		if got := h.Attempt(); got != want {
			t.Errorf("%d retries are attempt %d, want %d", retries, got, want)
		}
	}
}

func TestTheErrorTextIsCut(t *testing.T) {
	t.Parallel()
	h := full()
	h.Failure.LastError = strings.Repeat("€", envelope.MaxErrorRunes+1)
	if got := envelope.ParseHeaders(table(&h)).Failure.LastError; got != strings.Repeat("€", envelope.MaxErrorRunes) {
		t.Errorf("%d runes travelled, want %d", utf8.RuneCountInString(got), envelope.MaxErrorRunes)
	}
}

func TestCutRunes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		n    int
		want string
	}{
		"short enough":                          {"abc", 3, "abc"},
		"one too long":                          {"abcd", 3, "abc"},
		"runes of several bytes count once":     {"äöü", 3, "äöü"},
		"a rune is never split":                 {"äöü", 2, "äö"},
		"an invalid byte is replaced":           {"a\xffb", 3, "a\ufffdb"},
		"invalid bytes at the cut":              {"ab\xff\xff", 3, "ab\ufffd"},
		"a broken rune at the end":              {"ab\xe2\x82", 9, "ab\ufffd\ufffd"},
		"nothing":                               {"", 3, ""},
		"cut to nothing":                        {"abc", 0, ""},
		"a broken text that is longer in bytes": {"\xff\xff\xff", 2, "\ufffd\ufffd"},
		"a zero byte is a rune like any other":  {"a\x00b", 2, "a\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := envelope.CutRunes(row.text, row.n); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// FuzzParseHeaders reads a table whose values are of a type that the fuzzer picks for each header.
func FuzzParseHeaders(f *testing.F) {
	f.Add("text", int64(7), uint8(0), uint8(1))
	f.Add("\xff", int64(math.MaxInt64), uint8(3), uint8(9))
	f.Add("", int64(math.MinInt64), uint8(5), uint8(2))
	names := []string{
		"x-run", "x-instance", "x-seq", "x-scheduled-at", "x-sent-at", "x-retry-attempt", "traceparent", "x-error-class", "x-last-error",
		"x-first-failed-at", "x-original-exchange", "x-original-routing-key", "x-schema-version", "x-producer", "x-worker-version",
		"x-redriven-at", "x-deadline", "x-retried-at", "x-retry-delay",
	}
	f.Fuzz(func(t *testing.T, text string, number int64, first, step uint8) {
		values := []any{
			text, []byte(text), number, int32(number), int16(number), int8(number), uint8(number), uint16(number), uint32(number),
			float64(number), time.UnixMicro(number), nil, true,
		}
		all := map[string]any{}
		for i, name := range names {
			all[name] = values[(int(first)+i*int(step))%len(values)]
		}
		h := envelope.ParseHeaders(all)
		if h.Attempt() < 1 {
			t.Fatalf("attempt %d of %v", h.Attempt(), all)
		}
		again := envelope.ParseHeaders(table(&h))
		if h.Failure.LastError = envelope.CutRunes(h.Failure.LastError, envelope.MaxErrorRunes); h.Seq == envelope.NoSeq {
			h.Instance = 0 // without a sequence there is no identity
		}
		if again != h {
			t.Fatalf("%v was read as %+v and then as %+v", all, h, again)
		}
	})
}
