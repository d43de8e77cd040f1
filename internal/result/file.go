package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
)

// Names of a run's files in its folder.
const (
	FileResult  = "result.json"
	FileProfile = "profile.yaml"
	FileSeries  = "series.csv"
	FileReport  = "report.html"
	DirLatency  = "latency"
)

var (
	// ErrSchema is returned by Read for a file of another version, or for one that is no result.
	ErrSchema = errors.New("not a result that this build reads")
	// ErrNotFinite is returned by Write for a NaN or an infinity in a field that cannot be null.
	ErrNotFinite = errors.New("is not a finite number")
)

// maxBytes bounds a result.json that is read. A result has some tens of kilobytes.
const maxBytes = 64 << 20

// Write writes dir/result.json in one step: a reader sees the old file or the whole new one. It sets r.Schema and
// r.Dir, replaces nil lists and maps by empty ones and, where null is allowed, NaN and infinity by null. Its errors wrap
// ErrNotFinite or come from the file system.
func Write(dir string, r *Result) error {
	data, err := encode(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(dir, FileResult), err)
	}
	r.Dir = dir
	return replace(filepath.Join(dir, FileResult), data)
}

func encode(r *Result) ([]byte, error) {
	r.Schema = Schema
	if err := tidy(reflect.ValueOf(r).Elem(), ""); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tidy makes a value fit to be written: see Write.
func tidy(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s %w", path, ErrNotFinite)
		}
	case reflect.Pointer:
		return tidyPointer(v, path)
	case reflect.Struct:
		return tidyFields(v, path)
	case reflect.Slice:
		return tidyItems(v, path)
	case reflect.Map:
		return tidyEntries(v, path)
	}
	return nil
}

func tidyPointer(v reflect.Value, path string) error {
	if v.IsNil() {
		return nil
	}
	err := tidy(v.Elem(), path)
	if errors.Is(err, ErrNotFinite) && v.Elem().Kind() == reflect.Float64 {
		v.SetZero()
		return nil
	}
	return err
}

func tidyFields(v reflect.Value, path string) error {
	for i := range v.NumField() {
		if name := jsonName(v.Type().Field(i)); name != "" {
			if err := tidy(v.Field(i), join(path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func tidyItems(v reflect.Value, path string) error {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	if v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	for i := range v.Len() {
		if err := tidy(v.Index(i), join(path, fmt.Sprint(i))); err != nil {
			return err
		}
	}
	return nil
}

func tidyEntries(v reflect.Value, path string) error {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, k := range v.MapKeys() {
		if err := tidy(v.MapIndex(k), join(path, k.String())); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file beside its final name and renames it.
func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Read reads a result.json, or the one in a folder. A file of another schema version is refused with ErrSchema. Keys
// that this build does not know are ignored: a later build of the same version may have added them.
func Read(path string) (*Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, FileResult)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	r, err := decode(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	r.Dir = filepath.Dir(path)
	return r, nil
}

// decode looks at the version before the rest: another version may have other types.
func decode(from io.Reader) (*Result, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("%w: its schema is %q, want %q", ErrSchema, head.Schema, Schema)
	}
	r := new(Result)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return r, nil
}
