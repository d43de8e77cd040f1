package profile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// A node is one YAML value with its position. The tree is ours, and not the parser's, because values from the command
// line and from the table of defaults are put into it as well.
type node struct {
	kind    nodeKind
	at      place
	text    string // of scalars, as written, without quotes
	quoted  bool   // of scalars: quoted, or a block, so it is text whatever it looks like
	entries []entry
	items   []*node
}

type nodeKind uint8

const (
	nothing nodeKind = iota // null, or no value at all
	scalar
	mapping
	sequence
)

// String names the kind in messages.
func (k nodeKind) String() string {
	return [...]string{"empty", "a single value", "keys with values", "a list"}[k]
}

// place is where a value was written.
type place struct {
	file         string
	line, column int // 0 for values from the command line
}

// entry is one key of a mapping. Keys may repeat; decoding reports that.
type entry struct {
	key   string
	at    place
	value *node
}

// find returns the first entry with a key, or nil.
func (n *node) find(key string) *entry {
	for i := range n.entries {
		if n.entries[i].key == key {
			return &n.entries[i]
		}
	}
	return nil
}

// parseTree turns YAML into a tree. It takes the plain part of YAML only: one document, no anchors, aliases, tags or
// directives, and bounded nesting, so that no text of bounded size can make it slow or deep.
func parseTree(file string, data []byte) (*node, Problems) {
	tokens := lexer.Tokenize(string(data))
	if problems := screen(file, tokens); len(problems) > 0 {
		return nil, problems
	}
	parsed, problem := parseTokens(file, data)
	if problem != nil {
		return nil, Problems{*problem}
	}
	t := &treeMaker{file: file}
	root := &node{at: place{file, 1, 1}}
	for _, doc := range parsed.Docs {
		if made := t.node(doc.Body, root.at); made.kind != nothing {
			root = made
		}
	}
	return root, t.problems
}

// parseTokens runs the parser. A panic of it, on text that nobody has met yet, is a problem of the text like any other.
func parseTokens(file string, data []byte) (parsed *ast.File, problem *Problem) {
	defer func() {
		if r := recover(); r != nil {
			problem = &Problem{File: file, Line: 1, Column: 1, Message: fmt.Sprintf("cannot be read as YAML: %v", r)}
		}
	}()
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(file, err)
	}
	return parsed, nil
}

// syntaxProblem takes position and words out of a parser's error, without its drawing of the source.
func syntaxProblem(file string, err error) *Problem {
	p := &Problem{File: file, Line: 1, Column: 1, Message: "is not valid YAML"}
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		return p
	}
	p.Message = "is not valid YAML: " + syntax.GetMessage()
	if tk := syntax.GetToken(); tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	return p
}

// treeMaker turns the parser's nodes into ours.
type treeMaker struct {
	file     string
	problems Problems
}

// node converts one value. A value without a token of its own takes the position of its parent.
func (t *treeMaker) node(n ast.Node, parent place) *node {
	if n == nil {
		return &node{at: parent}
	}
	at := t.place(n, parent)
	switch n := n.(type) {
	case *ast.NullNode, *ast.CommentGroupNode:
		return &node{at: at}
	case *ast.MappingNode:
		return t.mapping(n.Values, at)
	case *ast.MappingValueNode:
		return t.mapping([]*ast.MappingValueNode{n}, at)
	case *ast.SequenceNode:
		out := &node{kind: sequence, at: at}
		for _, item := range n.Values {
			out.items = append(out.items, t.node(item, at))
		}
		return out
	case *ast.StringNode:
		// Token.Value of a plain text keeps no quotes; the node's type tells them apart.
		return &node{kind: scalar, at: at, text: n.Value, quoted: isQuote(n)}
	case *ast.LiteralNode:
		return &node{kind: scalar, at: at, text: n.Value.Value, quoted: true}
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: scalar, at: at, text: strings.TrimSpace(n.GetToken().Value)}
	default:
		t.problems = append(t.problems, Problem{File: at.file, Line: at.line, Column: at.column,
			Message: "uses a part of YAML that a profile has no need of: " + n.Type().String()})
		return &node{at: at}
	}
}

func (t *treeMaker) mapping(values []*ast.MappingValueNode, at place) *node {
	out := &node{kind: mapping, at: at}
	for _, v := range values {
		keyAt := t.place(v.Key, at)
		out.entries = append(out.entries, entry{key: keyText(v.Key), at: keyAt, value: t.node(v.Value, keyAt)})
	}
	if len(out.entries) > 0 {
		out.at = out.entries[0].at // the parser's own position of a mapping is its first colon
	}
	return out
}

// keyText returns a key as written.
func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	if tk := k.GetToken(); tk != nil {
		return strings.TrimSpace(tk.Value)
	}
	return ""
}

func (t *treeMaker) place(n ast.Node, parent place) place {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return place{t.file, tk.Position.Line, tk.Position.Column}
	}
	return parent
}
