package profile

import (
	"bytes"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// Source is the text of a profile and the name that problems are reported under.
type Source struct {
	Name string
	Data []byte
}

// Check is a further rule from a package that this one does not know, such as whether the thresholds name paths that
// results have. It reports each problem under the path of the key that it stands at.
type Check func(p *Profile, report func(path, message string))

// Parse turns a source and settings from the command line into a profile: strict decode, settings, defaults, rules. The
// error is of type Problems and holds everything that is wrong, as far as one problem does not hide another. The
// profile is to be read only.
func Parse(source Source, sets []Set, checks ...Check) (*Profile, error) {
	root, problems := read(source)
	if len(problems) > 0 {
		problems.sort()
		return nil, problems
	}
	d := newDecoder(root.at)
	for _, s := range sets {
		d.apply(root, s)
	}
	p := new(Profile)
	d.value(root, reflect.ValueOf(p).Elem(), "")
	d.clampDefaults(p)
	d.validate(p, checks)
	if len(d.problems) > 0 {
		d.problems.sort()
		return nil, d.problems
	}
	return p, nil
}

// read parses a source after the checks on the text as a whole.
func read(source Source) (*node, Problems) {
	at := Problem{File: source.Name, Line: 1, Column: 1}
	if len(source.Data) > maxBytes {
		at.Message = fmt.Sprintf("is longer than %d bytes, which is more than a profile can have", maxBytes)
		return nil, Problems{at}
	}
	if !utf8.Valid(source.Data) {
		bad := firstInvalid(source.Data)
		at.Line = 1 + bytes.Count(source.Data[:bad], []byte("\n"))
		at.Column = bad - bytes.LastIndexByte(source.Data[:bad], '\n')
		at.Message = "is not valid UTF-8"
		return nil, Problems{at}
	}
	return parseTree(source.Name, source.Data)
}

// firstInvalid returns the offset of the first byte that is not UTF-8.
func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}
