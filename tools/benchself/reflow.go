package main

import "strings"

// pageColumns is where lines of prose end.
const pageColumns = 120

// reflow breaks paragraphs and list items anew, since the figures put into them have any length. A paragraph ends at an
// empty line; a line that starts with "- " begins an item, and the lines after it belong to it.
func reflow(text string) string {
	var blocks []string
	open := false // the last block goes on
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			blocks = append(blocks, "")
		case open && !strings.HasPrefix(line, "- "):
			blocks[len(blocks)-1] += " " + line
		default:
			blocks = append(blocks, line)
		}
		open = line != ""
	}
	for i, b := range blocks {
		blocks[i] = broken(b)
	}
	return strings.Join(blocks, "\n")
}

// broken breaks one block; further lines of an item are indented.
func broken(block string) string {
	indent := ""
	if strings.HasPrefix(block, "- ") {
		indent = "  "
	}
	var b strings.Builder
	column := 0
	for i, word := range words(block) {
		switch {
		case i == 0:
		case column+1+len(word) > pageColumns:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// words splits at spaces, but not within code between backticks.
func words(text string) (out []string) {
	inCode := false
	for _, field := range strings.Fields(text) {
		if inCode {
			out[len(out)-1] += " " + field
		} else {
			out = append(out, field)
		}
		if strings.Count(field, "`")%2 == 1 {
			inCode = !inCode
		}
	}
	return out
}
