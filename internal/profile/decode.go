package profile

import (
	"fmt"
	"reflect"
	"strings"
)

// decoder walks tree and struct together. It fills defaults in as it goes, remembers where each key stands, and
// gathers problems instead of stopping at the first.
type decoder struct {
	root     place
	problems Problems
	given    map[string]place // concrete paths that were written, with the position of the value
	broken   map[string]bool  // paths that have a problem already: rules leave them alone
}

func newDecoder(root place) *decoder {
	return &decoder{root: root, given: map[string]place{}, broken: map[string]bool{}}
}

// fail reports a problem with a value and marks its path as broken.
func (d *decoder) fail(at place, path, format string, args ...any) {
	d.broken[path] = true
	d.problems = append(d.problems, Problem{File: at.file, Line: at.line, Column: at.column, Path: path,
		Message: fmt.Sprintf(format, args...)})
}

// value decodes one node into v.
func (d *decoder) value(n *node, v reflect.Value, path string) {
	switch {
	case v.Kind() == reflect.Struct:
		d.section(n, v, path)
	case v.Kind() == reflect.Slice:
		d.list(n, v, path)
	case v.Kind() == reflect.Map:
		d.texts(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

// section decodes a mapping into a struct. Nothing at all is an empty mapping: its keys take their defaults.
func (d *decoder) section(n *node, v reflect.Value, path string) {
	if n.kind != mapping && n.kind != nothing {
		d.fail(n.at, path, "is %s; want keys with values: %s", n.kind, strings.Join(keys(v.Type()), ", "))
		return
	}
	values := d.members(n, v.Type(), path)
	for i := range v.NumField() {
		name := key(v.Type().Field(i))
		if value, ok := values[name]; ok {
			d.given[join(path, name)] = value.at
			d.value(value, v.Field(i), join(path, name))
			continue
		}
		d.absent(n.at, v.Field(i), join(path, name))
	}
}

// members returns the values of a mapping by key, and reports keys that are unknown or there twice.
func (d *decoder) members(n *node, t reflect.Type, path string) map[string]*node {
	values := make(map[string]*node, len(n.entries))
	for _, e := range n.entries {
		at := join(path, e.key)
		if _, known := member(t, e.key); !known {
			d.fail(e.at, at, "%s", suggestKey(path, e.key, keys(t)))
			continue
		}
		if _, twice := values[e.key]; twice {
			d.fail(e.at, at, "is there twice; the first is at line %d", n.find(e.key).at.line)
			continue
		}
		values[e.key] = e.value
	}
	return values
}

// absent gives a key that was not written its default, or reports that it is required.
func (d *decoder) absent(parent place, v reflect.Value, path string) {
	f := field(path)
	switch {
	case v.Kind() == reflect.Struct:
		d.section(&node{at: parent}, v, path)
	case f.Need:
		d.fail(parent, path, "is required: %s", f.Doc)
	case v.Kind() == reflect.Slice:
		d.defaultList(f, v, path)
	case f.Default != "":
		d.scalar(&node{kind: scalar, at: parent, text: f.Default}, v, path)
	}
}

// defaultList fills a list from its row, whose default is written as in YAML: "[5s, 30s]".
func (d *decoder) defaultList(f *Field, v reflect.Value, path string) {
	if f.Default == "" {
		return
	}
	n := &node{kind: sequence, at: d.root}
	for _, text := range strings.Split(strings.Trim(f.Default, "[]"), ", ") {
		n.items = append(n.items, &node{kind: scalar, at: d.root, text: text})
	}
	d.list(n, v, path)
}

// list decodes a sequence into a slice.
func (d *decoder) list(n *node, v reflect.Value, path string) {
	if n.kind == nothing {
		n.kind = sequence
	}
	if n.kind != sequence {
		d.fail(n.at, path, "is %s; want a list", n.kind)
		return
	}
	if len(n.items) > maxItems {
		d.fail(n.at, path, "has %d items; at most %d are allowed", len(n.items), maxItems)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		at := fmt.Sprintf("%s.%d", path, i)
		d.given[at] = item.at
		d.value(item, out.Index(i), at)
	}
	if out.Len() > 0 {
		v.Set(out)
	}
}

// texts decodes a mapping of free keys to texts.
func (d *decoder) texts(n *node, v reflect.Value, path string) {
	if n.kind == nothing {
		return
	}
	if n.kind != mapping || len(n.entries) > maxItems {
		d.fail(n.at, path, "is %s; want at most %d names with texts", n.kind, maxItems)
		return
	}
	out := make(map[string]string, len(n.entries))
	for _, e := range n.entries {
		at := join(path, e.key)
		d.given[at] = e.value.at
		switch _, twice := out[e.key]; {
		case twice:
			d.fail(e.at, at, "is there twice; the first is at line %d", n.find(e.key).at.line)
		case e.key == "" || len(e.key) > maxText:
			d.fail(e.at, at, "is no name for a label")
		case e.value.kind != scalar || len(e.value.text) > maxText:
			d.fail(e.value.at, at, "is %s; want a text of at most %d bytes", e.value.kind, maxText)
		}
		out[e.key] = e.value.text
	}
	if len(out) > 0 {
		v.Set(reflect.ValueOf(out))
	}
}
