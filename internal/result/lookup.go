package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"spillway/internal/profile"
)

var (
	// ErrNoPath is returned for a path that no result has.
	ErrNoPath = errors.New("is not a path into result.json")
	// ErrNoNumber is returned for a path whose end is not a number.
	ErrNoNumber = errors.New("is not a number in result.json")
)

// Lookup returns the number at a dotted path, with ok false when it is null: not measured, or no samples. Items of
// lists go by number from 0, entries of maps by key; one that is not there has no samples. The error wraps ErrNoPath or
// ErrNoNumber for a path that can never have a number.
func (r *Result) Lookup(path string) (value float64, ok bool, err error) {
	if err := CheckPath(path); err != nil {
		return 0, false, err
	}
	v := reflect.ValueOf(r).Elem()
	for _, part := range strings.Split(path, ".") {
		if v = step(v, part); !v.IsValid() {
			return 0, false, nil
		}
	}
	return number(v)
}

// step goes one part down, or returns the zero Value when there is nothing.
func step(v reflect.Value, part string) reflect.Value {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		i, _ := fieldByName(v.Type(), part)
		return v.Field(i)
	case reflect.Map:
		return v.MapIndex(reflect.ValueOf(part))
	case reflect.Slice:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < v.Len() {
			return v.Index(i)
		}
	}
	return reflect.Value{}
}

func number(v reflect.Value) (value float64, ok bool, err error) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return 0, false, nil
	case v.CanInt():
		return float64(v.Int()), true, nil
	case v.CanUint():
		return float64(v.Uint()), true, nil
	default:
		return v.Float(), true, nil
	}
}

// CheckPath reports whether results have a number at a path, whatever one run measured. Its errors wrap ErrNoPath, with
// the nearest path that there is, or ErrNoNumber.
func CheckPath(path string) error {
	t := reflect.TypeFor[Result]()
	for _, part := range strings.Split(path, ".") {
		if t = stepType(t, part); t == nil {
			return noPath(path)
		}
	}
	if !isNumber(t) {
		return fmt.Errorf("%q %w", path, ErrNoNumber)
	}
	return nil
}

func noPath(path string) error {
	if near := profile.Suggest(path, Paths()); near != "" {
		return fmt.Errorf("%q %w; did you mean %q?", path, ErrNoPath, near)
	}
	return fmt.Errorf("%q %w", path, ErrNoPath)
}

// stepType goes one part down a type, or returns nil.
func stepType(t reflect.Type, part string) reflect.Type {
	t = target(t)
	switch {
	case closed(t):
		return nil
	case t.Kind() == reflect.Struct:
		if i, ok := fieldByName(t, part); ok {
			return t.Field(i).Type
		}
	case t.Kind() == reflect.Map && part != "":
		return t.Elem()
	case t.Kind() == reflect.Slice:
		if _, err := strconv.ParseUint(part, 10, 31); err == nil {
			return t.Elem()
		}
	}
	return nil
}

// closed reports whether a path ends at a type although Go sees parts in it. The profile is a setting, not a measure.
func closed(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[json.RawMessage]()
}

func target(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func isNumber(t reflect.Type) bool {
	switch target(t).Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return true
	default:
		return false
	}
}

// Paths lists the paths of result.json in the order of the file, with "*" for keys of maps and items of lists.
func Paths() []string { return pathsOf(reflect.TypeFor[Result](), "") }

func pathsOf(t reflect.Type, path string) []string {
	t = target(t)
	switch {
	case closed(t):
		return []string{path}
	case t.Kind() == reflect.Struct:
		var out []string
		for i := range t.NumField() {
			if name := jsonName(t.Field(i)); name != "" {
				out = append(out, pathsOf(t.Field(i).Type, join(path, name))...)
			}
		}
		return out
	case t.Kind() == reflect.Map || t.Kind() == reflect.Slice:
		return pathsOf(t.Elem(), path+".*")
	default:
		return []string{path}
	}
}

// fieldByName returns the index of the field with a JSON name.
func fieldByName(t reflect.Type, name string) (int, bool) {
	i := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return jsonName(f) == name && name != "" })
	return i, i >= 0
}

// jsonName returns a field's key in JSON; "" for one that is not written.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}
