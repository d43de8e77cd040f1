package profile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxBytes bounds a profile. The largest sensible one has a few kilobytes.
	maxBytes = 1 << 20
	// maxNesting bounds the depth of a profile, whose structs are five deep. The parser recurses, and its time and
	// memory grow with the square of the depth: 100,000 open brackets took it over a minute.
	maxNesting = 32
	// maxIndent bounds the indentation, and by it the depth of block mappings.
	maxIndent = 256
	// maxKeys and maxTokens bound the size beyond bytes: 190,000 short keys, which fit into maxBytes, took the parser two
	// and a half minutes. The largest profile that its own bounds allow has about 1,500 keys.
	maxKeys   = 4000
	maxTokens = 40_000
)

// screen looks over the tokens before the parser, which recurses, gets them, and refuses what a profile has no need of.
// The lexer's time is linear.
func screen(file string, tokens token.Tokens) Problems {
	s := screener{}
	for i, tk := range tokens {
		if tk.Position == nil {
			continue
		}
		message := s.refuses(tk)
		if i >= maxTokens || s.keys > maxKeys {
			message = "has more to it than any profile can have"
		}
		if message != "" {
			return Problems{{File: file, Line: tk.Position.Line, Column: tk.Position.Column, Message: message}}
		}
	}
	return nil
}

// screener keeps the nesting so far.
type screener struct {
	line   int // of the last token
	onLine int // block markers on that line: "- - - a" nests three deep
	open   int // flow brackets
	keys   int // colons
	begun  bool
}

// refuses returns why a token is refused, or "".
func (s *screener) refuses(tk *token.Token) string {
	if tk.Position.Line != s.line {
		s.line, s.onLine = tk.Position.Line, 0
		if tk.Position.Column > maxIndent && s.open == 0 {
			return "is indented too far"
		}
	}
	switch tk.Type {
	case token.AnchorType, token.AliasType, token.MergeKeyType:
		return "anchors and aliases are not supported in a profile: write the value out"
	case token.TagType:
		return "tags are not supported in a profile"
	case token.DirectiveType:
		return "directives are not supported in a profile"
	case token.MappingKeyType:
		return "keys with a question mark are not supported in a profile"
	case token.DocumentHeaderType:
		if s.begun {
			return "a profile is one document; a second one begins here"
		}
		return ""
	case token.CommentType:
		return ""
	}
	s.begun = true
	return s.nests(tk)
}

// nests counts a token's nesting, and returns why it is too deep, or "".
func (s *screener) nests(tk *token.Token) string {
	if tk.Type == token.MappingValueType {
		s.keys++
	}
	switch tk.Type {
	case token.SequenceStartType, token.MappingStartType:
		s.open++
	case token.SequenceEndType, token.MappingEndType:
		s.open = max(0, s.open-1)
	case token.SequenceEntryType, token.MappingValueType:
		if s.open == 0 {
			s.onLine++
		}
	}
	if s.open > maxNesting || s.onLine > maxNesting {
		return "is nested too deep for a profile"
	}
	return ""
}

// isQuote reports whether a text was written in quotes.
func isQuote(n *ast.StringNode) bool {
	return n.Token != nil && (n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType)
}
