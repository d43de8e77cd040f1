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
	headerDeliveryCount      = "x-delivery-count" // the broker's own
	headerAcquiredCount      = "x-acquired-count" // the same
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

// HeaderWriter takes the entries of a table of headers.
type HeaderWriter interface {
	Text(key, value string)
	Integer(key string, value int64)
}

// Write gives w every value that is present.
func (h *Headers) Write(w HeaderWriter) {
	writeText(w, headerRun, h.Run)
	if h.Seq != NoSeq {
		w.Integer(headerSeq, h.Seq)
		w.Integer(headerInstance, int64(h.Instance))
	}
	writeInteger(w, headerScheduledAt, h.ScheduledAt)
	writeInteger(w, headerSentAt, h.SentAt)
	writeInteger(w, headerRetryAttempt, int64(h.Retries))
	writeText(w, headerTraceParent, h.TraceParent)
	writeInteger(w, headerRedrivenAt, h.RedrivenAt)
	writeInteger(w, headerDeadline, h.Deadline)
	writeInteger(w, headerRetriedAt, h.RetriedAt)
	writeInteger(w, headerRetryDelay, h.RetryDelay)
	if h.Failure != (Failure{}) {
		h.Failure.write(w)
	}
}

func (f *Failure) write(w HeaderWriter) {
	writeText(w, headerErrorClass, f.Class)
	writeText(w, headerLastError, CutRunes(f.LastError, MaxErrorRunes))
	writeInteger(w, headerFirstFailedAt, f.FirstFailedAt)
	writeText(w, headerOriginalExchange, f.OriginalExchange)
	writeText(w, headerOriginalRoutingKey, f.OriginalRoutingKey)
	writeInteger(w, headerSchemaVersion, int64(f.SchemaVersion))
	writeText(w, headerProducer, f.Producer)
	writeText(w, headerWorkerVersion, f.WorkerVersion)
}

func writeText(w HeaderWriter, key, value string) {
	if value != "" {
		w.Text(key, value)
	}
}

func writeInteger(w HeaderWriter, key string, value int64) {
	if value != 0 {
		w.Integer(key, value)
	}
}

// HeaderReader makes Headers of the entries of a table, given one by one in any order. It is a HeaderWriter. Unknown keys, and values of
// the wrong kind, count as absent: a foreign message must not stop a worker. The zero value is ready to use.
type HeaderReader struct {
	headers Headers
	seen    bool // of a sequence: 0 is one
	// DeliveryCount is the broker's count of earlier returns of the message; quorum queues keep it, in a header.
	DeliveryCount int
	// AcquiredCount is how often the message was given to a consumer before (RabbitMQ 4.3 and later), whatever became of it.
	AcquiredCount int
}

// Headers returns what was read.
func (r *HeaderReader) Headers() Headers {
	if !r.seen {
		r.headers.Seq = NoSeq
	}
	return r.headers
}

// Text implements HeaderWriter.
func (r *HeaderReader) Text(key, value string) {
	h, f := &r.headers, &r.headers.Failure
	switch key {
	case headerRun:
		h.Run = value
	case headerTraceParent:
		h.TraceParent = value
	case headerErrorClass:
		f.Class = value
	case headerLastError:
		f.LastError = value
	case headerOriginalExchange:
		f.OriginalExchange = value
	case headerOriginalRoutingKey:
		f.OriginalRoutingKey = value
	case headerProducer:
		f.Producer = value
	case headerWorkerVersion:
		f.WorkerVersion = value
	}
}

// Integer implements HeaderWriter.
func (r *HeaderReader) Integer(key string, value int64) {
	h := &r.headers
	switch key {
	case headerSeq:
		h.Seq, r.seen = value, true
	case headerInstance:
		h.Instance = int(value)
	case headerScheduledAt:
		h.ScheduledAt = value
	case headerSentAt:
		h.SentAt = value
	case headerRetryAttempt:
		h.Retries = int(min(max(0, value), maxRetries))
	case headerRedrivenAt:
		h.RedrivenAt = value
	case headerDeadline:
		h.Deadline = value
	case headerRetriedAt:
		h.RetriedAt = value
	case headerRetryDelay:
		h.RetryDelay = value
	case headerFirstFailedAt:
		h.Failure.FirstFailedAt = value
	case headerSchemaVersion:
		h.Failure.SchemaVersion = int(value)
	case headerDeliveryCount:
		r.DeliveryCount = int(value)
	case headerAcquiredCount:
		r.AcquiredCount = int(value)
	}
}

// ParseHeaders reads a table of a client library. Values of a type that no header has count as absent.
func ParseHeaders(t map[string]any) Headers {
	var r HeaderReader
	for key, value := range t {
		switch v := value.(type) {
		case string:
			r.Text(key, v)
		case []byte:
			r.Text(key, string(v))
		default:
			if n, ok := integer(v); ok {
				r.Integer(key, n)
			}
		}
	}
	return r.Headers()
}

func integer(value any) (n int64, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int:
		return int64(v), true
	case time.Time:
		return v.UnixMicro(), true
	default:
		return 0, false
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
