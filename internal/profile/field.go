package profile

import (
	"reflect"
	"strings"
	"time"
)

// Field describes one key of a profile. The table in fields.go has one row per key, and everything that is true of a
// key by itself comes from its row: whether it is known, its default, its range, its choices, and its text in the JSON
// Schema. Rules over several keys are in rules.go.
type Field struct {
	Path    string   // dotted; "[]" marks the items of a list: "faults[].from"
	Doc     string   // meaning and special values, in sentences
	Unit    string   // "messages/s"; "" has none, or is a duration
	Default string   // as in YAML; "" means that there is none: the key is required, or stays empty
	Need    bool     // required
	Range   Range    // of numbers and durations (in seconds)
	Choices []string // of texts from a closed set
	Pattern string   // of other texts, a regular expression over the whole of it
	AtMost  string   // the path of a key that this one may not be above; an absent key's default is lowered to it
	AtLeast string   // the path of a key that this one may not be below; an absent key's default is raised to it
	AnyOK   bool     // "any" is accepted and lifts the check
}

// Range is the allowed range of a number, ends included unless Above.
type Range struct {
	Low, High float64
	Above     bool // Low itself is not allowed
}

// Bounds that several fields share.
const (
	// maxSeconds bounds every duration at 30 days, so that no sum of durations in a profile can overflow, and a tier's
	// TTL stays below the broker's own bound of 2^32-1 ms.
	maxSeconds = 30 * 24 * 3600
	// maxCount bounds the expectations; 2^40 is the number of messages that an instance can number.
	maxCount = 1 << 40
	maxItems = 100 // of any list or map: nobody writes more by hand, and a mistake shows
	maxText  = 4096
)

func from(low, high float64) Range  { return Range{Low: low, High: high} }
func above(low, high float64) Range { return Range{Low: low, High: high, Above: true} }

// holds reports whether a number is in the range. NaN never is.
func (r Range) holds(x float64) bool {
	if r.Above && x <= r.Low {
		return false
	}
	return x >= r.Low && x <= r.High
}

// Fields returns a copy of the table, in the order of the struct.
func Fields() []Field { return append([]Field(nil), table...) }

// field returns the row of a concrete path such as "faults.0.from", or nil.
func field(path string) *Field {
	want := generic(path)
	for i := range table {
		if table[i].Path == want {
			return &table[i]
		}
	}
	return nil
}

// generic turns a concrete path into the path of its row: "tiers.0" becomes "tiers[]".
func generic(path string) string {
	parts := strings.Split(path, ".")
	out := parts[0]
	for _, part := range parts[1:] {
		if isIndex(part) {
			out += "[]"
		} else {
			out += "." + part
		}
	}
	return out
}

func isIndex(part string) bool {
	for _, c := range part {
		if c < '0' || c > '9' {
			return false
		}
	}
	return part != ""
}

// join extends a dotted path.
func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

var durationType = reflect.TypeFor[time.Duration]()

// key returns the YAML key of a struct field.
func key(f reflect.StructField) string { return f.Tag.Get("yaml") }

// keys returns the YAML keys of a struct type, in order.
func keys(t reflect.Type) []string {
	out := make([]string, t.NumField())
	for i := range out {
		out[i] = key(t.Field(i))
	}
	return out
}

// member returns the index of the struct field with a YAML key.
func member(t reflect.Type, name string) (int, bool) {
	for i := range t.NumField() {
		if key(t.Field(i)) == name {
			return i, true
		}
	}
	return 0, false
}
