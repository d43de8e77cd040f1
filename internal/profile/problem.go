package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a profile.
type Problem struct {
	File    string // the file's name, or the words of the command line: "--set load.rate=abc"
	Line    int    // from 1; 0 for the command line
	Column  int    // from 1, in characters; 0 for the command line
	Path    string // the key, dotted; "" for the file as a whole
	Message string // the value, and what is wrong with it
}

// String returns `file:line:col: path: message` without the parts that are not known. Control characters are escaped:
// a profile is somebody else's text, and this goes to a terminal.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return Printable(b.String())
}

// Problems is everything that is wrong with a profile, sorted by position, as one error. It is never empty when it is
// returned as an error.
type Problems []Problem

// maxLines bounds the text of Problems. Nobody mends more before looking again.
const maxLines = 100

// Error returns one line per problem, and at the end how many are left out.
func (p Problems) Error() string {
	lines := make([]string, 0, min(len(p), maxLines)+1)
	for _, problem := range p[:min(len(p), maxLines)] {
		lines = append(lines, problem.String())
	}
	if more := len(p) - maxLines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// sort orders by file (the profile before the command line), then by position.
func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(1, b.Line), min(1, a.Line)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// maxShown bounds a value quoted in a message.
const maxShown = 60

// shown quotes a value for a message, cut when it is long.
func shown(text string) string {
	runes := []rune(text)
	if len(runes) > maxShown {
		return fmt.Sprintf("%q...", string(runes[:maxShown]))
	}
	return fmt.Sprintf("%q", text)
}

// Printable replaces what could move a terminal's cursor or hide text by its Go escape.
func Printable(s string) string {
	quoted := fmt.Sprintf("%q", s)
	quoted = quoted[1 : len(quoted)-1]
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted)
}
