package envelope

import (
	"time"
	"unicode/utf8"
)

// Header names on the wire.
const (
	headerRun                = "x-run"
	headerInstance           = "x-instance"
	headerSeq                = "x-seq"
	headerScheduledAt        = "x-scheduled-at"
	headerSentAt             = "x-sent-at"
	headerRetryAttempt       = "x-retry-attempt"
	headerTraceParent        = "traceparent"
	headerErrorClass         = "x-error-class"
	headerLastError          = "x-last-error"
	headerFirstFailedAt      = "x-first-failed-at"
	headerOriginalExchange   = "x-original-exchange"
	headerOriginalRoutingKey = "x-original-routing-key"
	headerSchemaVersion      = "x-schema-version"
	headerProducer           = "x-producer"
	headerWorkerVersion      = "x-worker-version"
	headerRedrivenAt         = "x-redriven-at"
	headerDeadline           = "x-deadline"
	headerRetriedAt          = "x-retried-at"
	headerRetryDelay         = "x-retry-delay"
)

// MaxErrorRunes bounds the error text carried by a message; longer texts are cut.
const MaxErrorRunes = 512

// maxRetries bounds the retries that a message can claim: a foreign header must not overflow the attempt.
const maxRetries = 1<<31 - 2

// NoSeq is the sequence of a message that carries none.
const NoSeq int64 = -1

// Headers is the metadata of a message beside its properties. Times are microseconds since the Unix epoch, 0 is absent.
type Headers struct {
	Run         string
	Instance    int
	Seq         int64 // NoSeq when absent
	ScheduledAt int64 // when the message was due
	SentAt      int64 // when this copy was first written to the broker
	Retries     int   // retries so far; absent is 0, and the attempt is Retries + 1
	TraceParent string
	RedrivenAt  int64   // set by a redrive, which opens a new budget
	Deadline    int64   // a producer's TTL, kept as a business deadline
	RetriedAt   int64   // when this copy was written to its retry tier
	RetryDelay  int64   // the TTL of that tier's queue, in microseconds
	Failure     Failure // zero until the first failure
}

// Failure is what is known of a message's failures.
type Failure struct {
	Class              string
	LastError          string // at most MaxErrorRunes runes
	FirstFailedAt      int64
	OriginalExchange   string
	OriginalRoutingKey string // retrying changes the routing key; the first one travels here
	SchemaVersion      int
	Producer           string
	WorkerVersion      string
}

// Attempt returns the 1-based attempt that a delivery with these headers is.
func (h *Headers) Attempt() int { return h.Retries + 1 }

// Table returns the headers as a table for a driver. Absent values are left out.
func (h *Headers) Table() map[string]any {
	t := make(map[string]any, 8)
	putString(t, headerRun, h.Run)
	if h.Seq != NoSeq {
		t[headerSeq] = h.Seq
		t[headerInstance] = int32(h.Instance)
	}
	putInt(t, headerScheduledAt, h.ScheduledAt)
	putInt(t, headerSentAt, h.SentAt)
	putInt(t, headerRetryAttempt, int64(h.Retries))
	putString(t, headerTraceParent, h.TraceParent)
	putInt(t, headerRedrivenAt, h.RedrivenAt)
	putInt(t, headerDeadline, h.Deadline)
	putInt(t, headerRetriedAt, h.RetriedAt)
	putInt(t, headerRetryDelay, h.RetryDelay)
	if h.Failure != (Failure{}) {
		h.Failure.put(t)
	}
	return t
}

func (f *Failure) put(t map[string]any) {
	putString(t, headerErrorClass, f.Class)
	putString(t, headerLastError, CutRunes(f.LastError, MaxErrorRunes))
	putInt(t, headerFirstFailedAt, f.FirstFailedAt)
	putString(t, headerOriginalExchange, f.OriginalExchange)
	putString(t, headerOriginalRoutingKey, f.OriginalRoutingKey)
	putInt(t, headerSchemaVersion, int64(f.SchemaVersion))
	putString(t, headerProducer, f.Producer)
	putString(t, headerWorkerVersion, f.WorkerVersion)
}

func putString(t map[string]any, key, value string) {
	if value != "" {
		t[key] = value
	}
}

func putInt(t map[string]any, key string, value int64) {
	if value != 0 {
		t[key] = value
	}
}

// ParseHeaders reads a table. Values of a wrong type count as absent: a foreign message must not stop a worker.
func ParseHeaders(t map[string]any) Headers {
	return Headers{
		Run:         text(t, headerRun),
		Instance:    int(integer(t, headerInstance, 0)),
		Seq:         integer(t, headerSeq, NoSeq),
		ScheduledAt: integer(t, headerScheduledAt, 0),
		SentAt:      integer(t, headerSentAt, 0),
		Retries:     int(min(max(0, integer(t, headerRetryAttempt, 0)), maxRetries)),
		TraceParent: text(t, headerTraceParent),
		RedrivenAt:  integer(t, headerRedrivenAt, 0),
		Deadline:    integer(t, headerDeadline, 0),
		RetriedAt:   integer(t, headerRetriedAt, 0),
		RetryDelay:  integer(t, headerRetryDelay, 0),
		Failure:     parseFailure(t),
	}
}

func parseFailure(t map[string]any) Failure {
	return Failure{
		Class:              text(t, headerErrorClass),
		LastError:          text(t, headerLastError),
		FirstFailedAt:      integer(t, headerFirstFailedAt, 0),
		OriginalExchange:   text(t, headerOriginalExchange),
		OriginalRoutingKey: text(t, headerOriginalRoutingKey),
		SchemaVersion:      int(integer(t, headerSchemaVersion, 0)),
		Producer:           text(t, headerProducer),
		WorkerVersion:      text(t, headerWorkerVersion),
	}
}

func text(t map[string]any, key string) string {
	switch v := t[key].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	default:
		return ""
	}
}

func integer(t map[string]any, key string, absent int64) int64 {
	switch v := t[key].(type) {
	case int64:
		return v
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	case int8:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case int:
		return int64(v)
	case time.Time:
		return v.UnixMicro()
	default:
		return absent
	}
}

// CutRunes returns s cut to at most n runes, with invalid UTF-8 replaced, since a broker may refuse it in a header.
func CutRunes(s string, n int) string {
	if len(s) <= n && utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, 0, n)
	for _, r := range s {
		if len(runes) == n {
			break
		}
		runes = append(runes, r)
	}
	return string(runes)
}
