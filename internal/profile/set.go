package profile

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Set is one setting from the command line. It wins over the file, and a later one wins over an earlier one.
type Set struct {
	Path  string // dotted; items of lists by number from 0, where the number after the last appends: "faults.0.for"
	Value string // as in YAML, lists in brackets; texts are taken as they are
	Words string // how problems name it, "--rate abc"; "" is `--set path=value`
}

// ParseSet reads "path=value". The value may hold further equal signs, and may be empty.
func ParseSet(text string) (Set, error) {
	path, value, ok := strings.Cut(text, "=")
	if !ok || path == "" {
		return Set{}, fmt.Errorf("--set %s: want path=value, such as load.rate=500", shown(text))
	}
	return Set{Path: path, Value: value}, nil
}

func (s Set) words() string {
	if s.Words != "" {
		return s.Words
	}
	return "--set " + s.Path + "=" + s.Value
}

// apply puts a setting into the tree, in front of defaults and rules, which judge it like any other value.
func (d *decoder) apply(root *node, s Set) {
	a := setter{d: d, set: s, at: place{file: s.words()}}
	if !utf8.ValidString(s.Path) || !utf8.ValidString(s.Value) {
		d.fail(a.at, "", "is not valid UTF-8")
		return
	}
	a.into(root, reflect.TypeFor[Profile](), strings.Split(s.Path, "."), "")
}

// setter walks one setting down the tree.
type setter struct {
	d   *decoder
	set Set
	at  place
}

// into sets rest below n, which is decoded as type t; path leads to n.
func (a *setter) into(n *node, t reflect.Type, rest []string, path string) {
	if len(rest) == 0 {
		a.replace(n, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		a.intoSection(n, t, rest, path)
	case reflect.Slice:
		a.intoList(n, t, rest, path)
	case reflect.Map:
		name := strings.Join(rest, ".")
		if child := a.child(n, name, path); child != nil {
			a.replace(child, t.Elem(), join(path, name))
		}
	default:
		a.d.fail(a.at, path, "has no keys below it")
	}
}

func (a *setter) intoSection(n *node, t reflect.Type, rest []string, path string) {
	i, known := member(t, rest[0])
	if !known {
		a.d.fail(a.at, join(path, rest[0]), "%s", suggestKey(path, rest[0], keys(t)))
		return
	}
	if child := a.child(n, rest[0], path); child != nil {
		a.into(child, t.Field(i).Type, rest[1:], join(path, rest[0]))
	}
}

func (a *setter) intoList(n *node, t reflect.Type, rest []string, path string) {
	if n.kind == nothing {
		a.defaultItems(n, path)
		n.kind, n.at = sequence, a.at
	}
	i, err := strconv.Atoi(rest[0])
	switch {
	case n.kind != sequence:
		a.d.fail(a.at, path, "is %s; want a list", n.kind)
		return
	case err != nil || i < 0 || i > len(n.items):
		a.d.fail(a.at, join(path, rest[0]), "is not an item: %s has %d, numbered from 0; %d appends one", path, len(n.items), len(n.items))
		return
	case i == len(n.items):
		n.items = append(n.items, &node{at: a.at})
	}
	a.into(n.items[i], t.Elem(), rest[1:], join(path, rest[0]))
}

// defaultItems fills a list that the file leaves out, so that one item of a default can be changed by its number.
func (a *setter) defaultItems(n *node, path string) {
	f := field(path)
	if f.Default == "" {
		return
	}
	list, _ := parseTree(a.at.file, []byte(f.Default))
	n.items = list.items
	for _, item := range n.items {
		item.at = a.at
	}
}

// child returns the value under a key, made when it is not there, or nil when n cannot have keys.
func (a *setter) child(n *node, key, path string) *node {
	if n.kind == nothing {
		n.kind, n.at = mapping, a.at
	}
	if n.kind != mapping {
		a.d.fail(a.at, path, "is %s in the file, and has no keys below it", n.kind)
		return nil
	}
	if e := n.find(key); e != nil {
		return e.value
	}
	n.entries = append(n.entries, entry{key: key, at: a.at, value: &node{at: a.at}})
	return n.entries[len(n.entries)-1].value
}

// replace puts the setting's value in place of n.
func (a *setter) replace(n *node, t reflect.Type, path string) {
	if t.Kind() == reflect.String {
		*n = node{kind: scalar, at: a.at, text: a.set.Value, quoted: true}
		return
	}
	value, problems := read(Source{Name: a.at.file, Data: []byte(a.set.Value)})
	if len(problems) > 0 {
		a.d.fail(a.at, path, "%s", problems[0].Message)
		return
	}
	value.move(a.at)
	*n = *value
}

// move gives a whole tree one position.
func (n *node) move(at place) {
	n.at = at
	for i := range n.entries {
		n.entries[i].at = at
		n.entries[i].value.move(at)
	}
	for _, item := range n.items {
		item.move(at)
	}
}
