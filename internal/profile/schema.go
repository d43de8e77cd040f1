package profile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// SchemaURI is the dialect of the schema.
const SchemaURI = "https://json-schema.org/draft/2020-12/schema"

// durationPattern is Go's notation of a duration that is not negative, or a number of seconds.
const durationPattern = `^([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`

// Schema returns the JSON Schema (draft 2020-12) of a profile, for editors. It is made from the same table as
// validation and defaults; rules over several keys have no place in it.
func Schema() []byte {
	root := append(orderedObject{{"$schema", SchemaURI}, {"title", "spillway profile"}},
		schemaOf(reflect.TypeFor[Profile](), "")...)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(root) // texts, numbers and bools only
	return b.Bytes()
}

// schemaOf returns the schema of the key at a path of the table.
func schemaOf(t reflect.Type, path string) orderedObject {
	f := rowAt(path)
	out := orderedObject{}
	if f.Doc != "" {
		out = append(out, property{"description", description(f, t)})
	}
	switch {
	case t.Kind() == reflect.Struct:
		return append(out, sectionSchema(t, path)...)
	case t.Kind() == reflect.Slice:
		out = append(out, property{"type", []string{"array", "null"}}, property{"maxItems", maxItems},
			property{"items", schemaOf(t.Elem(), path+"[]")})
	case t.Kind() == reflect.Map:
		return append(out, property{"type", []string{"object", "null"}}, property{"maxProperties", maxItems},
			property{"additionalProperties", orderedObject{{"type", []string{"string", "number", "boolean"}}}})
	case t == durationType:
		out = append(out, durationSchema(f)...)
	case t.Kind() == reflect.Pointer:
		out = append(out, property{"anyOf", []any{numberSchema("integer", f), orderedObject{{"const", anyCount}}}})
	default:
		out = append(out, plainSchema(t, f)...)
	}
	return withDefault(out, t, f)
}

// rowAt returns the row of a table path; the root has an empty one.
func rowAt(path string) Field {
	for _, f := range table {
		if f.Path == path {
			return f
		}
	}
	return Field{}
}

func description(f Field, t reflect.Type) string {
	text := f.Doc
	if f.Unit != "" {
		text += " Unit: " + f.Unit + "."
	}
	if t == durationType {
		text += " Range: " + durationRange(f.Range) + "."
	}
	if f.AtMost != "" {
		text += " At most " + f.AtMost + ", and by default lowered to it."
	}
	if f.AtLeast != "" {
		text += " At least " + f.AtLeast + ", and by default raised to it."
	}
	return text
}

func sectionSchema(t reflect.Type, path string) orderedObject {
	properties, required := orderedObject{}, []string{}
	for i := range t.NumField() {
		name := key(t.Field(i))
		child := join(path, name)
		properties = append(properties, property{name, schemaOf(t.Field(i).Type, child)})
		if needed(t.Field(i).Type, child) {
			required = append(required, name)
		}
	}
	out := orderedObject{{"type", "object"}, {"additionalProperties", false}, {"properties", properties}}
	if len(required) > 0 {
		return append(out, property{"required", required})
	}
	out[0].value = []string{"object", "null"} // a section without required keys may be left empty
	return out
}

// needed reports whether a key is required, or is a section with a required key.
func needed(t reflect.Type, path string) bool {
	if t.Kind() != reflect.Struct {
		return rowAt(path).Need
	}
	for i := range t.NumField() {
		if needed(t.Field(i).Type, join(path, key(t.Field(i)))) {
			return true
		}
	}
	return false
}

func durationSchema(f Field) orderedObject {
	return orderedObject{{"anyOf", []any{
		numberSchema("number", f),
		orderedObject{{"type", "string"}, {"pattern", durationPattern}},
	}}}
}

func numberSchema(kind string, f Field) orderedObject {
	low := "minimum"
	if f.Range.Above {
		low = "exclusiveMinimum"
	}
	return orderedObject{{"type", kind}, {low, f.Range.Low}, {"maximum", f.Range.High}}
}

// plainSchema is the schema of texts, bools and numbers.
func plainSchema(t reflect.Type, f Field) orderedObject {
	switch {
	case t.Kind() == reflect.Bool:
		return orderedObject{{"type", "boolean"}}
	case t.Kind() == reflect.Float64:
		return numberSchema("number", f)
	case t.Kind() != reflect.String:
		return numberSchema("integer", f)
	case len(f.Choices) > 0:
		return orderedObject{{"enum", f.Choices}}
	case f.Pattern != "":
		return orderedObject{{"type", "string"}, {"pattern", "^(" + f.Pattern + ")$"}}
	default:
		return orderedObject{{"type", "string"}, {"maxLength", maxText}}
	}
}

// withDefault adds the default with the JSON type that it has in a file: durations as text, numbers as numbers.
func withDefault(out orderedObject, t reflect.Type, f Field) orderedObject {
	if f.Default == "" {
		return out
	}
	var value any = f.Default
	switch {
	case t.Kind() == reflect.Slice:
		value = strings.Split(strings.Trim(f.Default, "[]"), ", ")
	case t != durationType && t.Kind() != reflect.String && f.Default != anyCount:
		value = json.RawMessage(f.Default)
	}
	return append(out, property{"default", value})
}
