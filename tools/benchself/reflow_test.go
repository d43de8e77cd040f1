package main

import (
	"strings"
	"testing"
)

func TestProseIsBrokenAnewAndListsStayLists(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("word ", 30)) // 149 characters
	line := strings.TrimSpace(strings.Repeat("word ", 24)) // 119
	rest := strings.TrimSpace(strings.Repeat("word ", 6))
	item := strings.TrimSpace(strings.Repeat("word ", 23))
	for _, row := range []struct{ name, text, want string }{
		{"short lines are joined", "one\ntwo\nthree", "one two three"},
		{"a long line is broken", long, line + "\n" + rest},
		{"code is not broken", line + " `run --off`, " + rest, line + "\n`run --off`, " + rest},
		{"paragraphs stay apart", "one\n\ntwo", "one\n\ntwo"},
		{"items stay items, and go on indented", "- a\n  b\n- " + long, "- a b\n- " + item + "\n  " + rest + " word"},
		{"a list after a paragraph", "one:\n\n- a\n- b\n\ntwo", "one:\n\n- a\n- b\n\ntwo"},
	} {
		if got := reflow(row.text); got != row.want {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, got, row.want)
		}
	}
}
