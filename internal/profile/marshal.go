package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Marshal returns a profile as YAML with every key written out. Parse reads it back to an equal profile.
func Marshal(p *Profile) []byte {
	w := &yamlWriter{}
	w.section(reflect.ValueOf(p).Elem(), 0)
	return w.Bytes()
}

type yamlWriter struct{ bytes.Buffer }

const indentStep = 2

// section writes the keys of a struct, one per line, in order.
func (w *yamlWriter) section(v reflect.Value, indent int) {
	for i := range v.NumField() {
		if i > 0 || indent == 0 {
			w.WriteString(strings.Repeat(" ", indent))
		}
		w.WriteString(key(v.Type().Field(i)) + ":")
		w.value(v.Field(i), indent+indentStep)
	}
}

// value writes what follows a key's colon, and the line's end.
func (w *yamlWriter) value(v reflect.Value, indent int) {
	switch {
	case v.Kind() == reflect.Struct:
		w.WriteString("\n" + strings.Repeat(" ", indent))
		w.section(v, indent)
	case v.Kind() == reflect.Slice:
		w.list(v, indent)
	case v.Kind() == reflect.Map:
		w.texts(v, indent)
	case v.Kind() == reflect.String && folds(v.String()):
		w.folded(v.String(), indent)
	default:
		w.WriteString(" " + scalarText(v) + "\n")
	}
}

func (w *yamlWriter) list(v reflect.Value, indent int) {
	if v.Len() == 0 {
		w.WriteString(" []\n")
		return
	}
	w.WriteString("\n")
	for i := range v.Len() {
		w.WriteString(strings.Repeat(" ", indent) + "- ")
		if item := v.Index(i); item.Kind() == reflect.Struct {
			w.section(item, indent+indentStep)
		} else {
			w.WriteString(scalarText(item) + "\n")
		}
	}
}

func (w *yamlWriter) texts(v reflect.Value, indent int) {
	if v.Len() == 0 {
		w.WriteString(" {}\n")
		return
	}
	w.WriteString("\n")
	for _, name := range sortedKeys(v) {
		text := v.MapIndex(reflect.ValueOf(name)).String()
		w.WriteString(strings.Repeat(" ", indent) + quote(name) + ": " + quote(text) + "\n")
	}
}

func sortedKeys(v reflect.Value) []string {
	names := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}

// scalarText returns a single value as Parse reads it.
func scalarText(v reflect.Value) string {
	switch {
	case v.Type() == durationType:
		return durationText(time.Duration(v.Int()))
	case v.Kind() == reflect.Pointer && v.IsNil():
		return anyCount
	case v.Kind() == reflect.Pointer:
		return scalarText(v.Elem())
	case v.Kind() == reflect.String:
		return textValue(v.String())
	case v.Kind() == reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	default:
		return fmt.Sprint(v.Interface())
	}
}

// textValue leaves a plain word bare, and quotes everything else.
func textValue(s string) string {
	bare := s != "" && unicode.IsLetter(rune(s[0])) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off"}, strings.ToLower(s))
	for _, r := range s {
		bare = bare && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
	}
	if bare {
		return s
	}
	return quote(s)
}

// quote writes a double-quoted scalar. JSON's escapes are YAML's.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// foldAt is the width of a folded paragraph, and the length from which a text is one.
const foldAt = 90

// folds reports whether a text is a paragraph that a folded block gives back unchanged: single blanks between words.
func folds(s string) bool {
	if len(s) < foldAt || s != strings.Join(strings.Fields(s), " ") {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func (w *yamlWriter) folded(s string, indent int) {
	w.WriteString(" >-\n")
	margin := strings.Repeat(" ", indent)
	line := margin
	for _, word := range strings.Fields(s) {
		if len(line) > len(margin) && len(line)+1+len(word) > foldAt {
			w.WriteString(line + "\n")
			line = margin
		}
		if len(line) > len(margin) {
			line += " "
		}
		line += word
	}
	w.WriteString(line + "\n")
}

// MarshalJSON returns the profile with its YAML keys and order, and durations as seconds. JSON being YAML, Parse reads
// it back.
func (p *Profile) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonValue(reflect.ValueOf(p).Elem()))
}

// jsonValue turns a field into what encoding/json writes as wanted.
func jsonValue(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Struct:
		out := make(orderedObject, 0, v.NumField())
		for i := range v.NumField() {
			out = append(out, property{key(v.Type().Field(i)), jsonValue(v.Field(i))})
		}
		return out
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = jsonValue(v.Index(i))
		}
		return out
	case v.Kind() == reflect.Map && v.Len() == 0:
		return orderedObject{}
	case v.Type() == durationType:
		return time.Duration(v.Int()).Seconds()
	case v.Kind() == reflect.Pointer && v.IsNil():
		return anyCount
	default:
		return v.Interface()
	}
}

// orderedObject is a JSON object that keeps the order of its properties.
type orderedObject []property

type property struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o orderedObject) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(p.name) + ":")
		value, err := json.Marshal(p.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
