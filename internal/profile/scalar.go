package profile

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// anyCount is the text that lifts a check on a count.
const anyCount = "any"

// scalar decodes a single value by the type of the struct field, and checks it against its row of the table.
func (d *decoder) scalar(n *node, v reflect.Value, path string) {
	if n.kind != scalar {
		d.fail(n.at, path, "is %s; want %s", n.kind, wanted(v.Type()))
		return
	}
	f := field(path)
	switch {
	case v.Type() == durationType:
		d.duration(n, v, f, path)
	case v.Kind() == reflect.String:
		d.text(n, v, f, path)
	case v.Kind() == reflect.Bool:
		d.boolean(n, v, path)
	case v.Kind() == reflect.Float64:
		d.float(n, v, f, path)
	case v.Kind() == reflect.Pointer:
		d.optionalCount(n, v, f, path)
	default:
		d.integer(n, v, f, path)
	}
}

// wanted says in words what a key takes.
func wanted(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration such as 30s, 1m30s, or 30 for seconds"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Pointer:
		return `a whole number or "any"`
	default:
		return "a whole number"
	}
}

func (d *decoder) duration(n *node, v reflect.Value, f *Field, path string) {
	value, ok := parseDuration(n.text)
	if !ok {
		d.fail(n.at, path, "%s is not a duration; want %s", shown(n.text), "30s, 1m30s, or 30 for seconds")
		return
	}
	if !f.Range.holds(value.Seconds()) {
		d.fail(n.at, path, "%s is out of range; want %s", n.text, durationRange(f.Range))
		return
	}
	v.SetInt(int64(value))
}

// parseDuration reads "30" and 0.5 as seconds, and otherwise Go's notation. It refuses what does not fit.
func parseDuration(text string) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, true
	}
	seconds, ok := parseNumber(text)
	if !ok || math.Abs(seconds) > math.MaxInt64/1e9 {
		return 0, false
	}
	return time.Duration(math.Round(seconds * 1e9)), true
}

// parseNumber reads a finite decimal number. Hexadecimal and underscores are refused: they read differently in other
// YAML tools.
func parseNumber(text string) (float64, bool) {
	if strings.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

func (d *decoder) float(n *node, v reflect.Value, f *Field, path string) {
	x, ok := parseNumber(n.text)
	switch {
	case n.quoted || !ok:
		d.fail(n.at, path, "%s is not a finite number", shown(n.text))
	case !f.Range.holds(x):
		d.fail(n.at, path, "%s is out of range; want %s", n.text, numberRange(f))
	default:
		v.SetFloat(x)
	}
}

func (d *decoder) integer(n *node, v reflect.Value, f *Field, path string) {
	if v.Kind() == reflect.Uint64 {
		d.unsigned(n, v, path)
		return
	}
	x, err := strconv.ParseInt(n.text, 10, 64)
	switch {
	case n.quoted || errors.Is(err, strconv.ErrSyntax):
		d.fail(n.at, path, "%s is not a whole number", shown(n.text))
	case err != nil || !f.Range.holds(float64(x)):
		d.fail(n.at, path, "%s is out of range; want %s", n.text, numberRange(f))
	default:
		v.SetInt(x)
	}
}

func (d *decoder) unsigned(n *node, v reflect.Value, path string) {
	x, err := strconv.ParseUint(n.text, 10, 64)
	if err != nil || n.quoted {
		d.fail(n.at, path, "%s is not a whole number from 0 to 2^64-1", shown(n.text))
		return
	}
	v.SetUint(x)
}

// optionalCount decodes a count that "any" lifts.
func (d *decoder) optionalCount(n *node, v reflect.Value, f *Field, path string) {
	if n.text == anyCount {
		v.SetZero()
		return
	}
	if _, err := strconv.ParseInt(n.text, 10, 64); errors.Is(err, strconv.ErrSyntax) || n.quoted {
		d.fail(n.at, path, "%s is neither a whole number nor %q", shown(n.text), anyCount)
		return
	}
	count := reflect.New(v.Type().Elem())
	d.integer(n, count.Elem(), f, path)
	v.Set(count)
}

func (d *decoder) boolean(n *node, v reflect.Value, path string) {
	if n.quoted || n.text != "true" && n.text != "false" {
		d.fail(n.at, path, "%s is not true or false", shown(n.text))
		return
	}
	v.SetBool(n.text == "true")
}

func (d *decoder) text(n *node, v reflect.Value, f *Field, path string) {
	switch {
	case len(f.Choices) > 0 && !contains(f.Choices, n.text):
		d.fail(n.at, path, "%s", choiceMessage(n.text, f.Choices))
	case f.Pattern != "" && !regexp.MustCompile("^(?:"+f.Pattern+")$").MatchString(n.text):
		d.fail(n.at, path, "%s does not fit: %s", shown(n.text), f.Doc)
	case len(n.text) > maxText:
		d.fail(n.at, path, "has %d bytes; at most %d are allowed", len(n.text), maxText)
	default:
		v.SetString(n.text)
	}
}
