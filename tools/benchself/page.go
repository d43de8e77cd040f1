package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"
)

//go:embed page.md.tmpl
var pageText string

// page is what the template sees.
type page struct {
	Newest   *section // nil when nothing was measured yet
	Rows     []row
	Sections []section
}

// render writes the page: all rows in one table, those that were not measured too, and then the sections.
func render(sections map[string]section) (string, error) {
	var p page
	for _, m := range all() {
		s, measured := sections[m.name()]
		if !measured {
			for _, t := range m.targets() {
				p.Rows = append(p.Rows, row{target: t, Verdict: unmeasured(t)})
			}
			continue
		}
		p.Rows = append(p.Rows, s.Rows...)
		p.Sections = append(p.Sections, s)
		if p.Newest == nil || s.At.After(p.Newest.At) {
			p.Newest = &s
		}
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"item":  func(note string) string { return reflow("- " + note) },
		"cells": func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" },
		"rule":  func(cells []string) string { return "|" + strings.Repeat("---|", len(cells)) },
		"share": func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
		"fine":  func(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) },
		"took":  func(seconds float64) string { return (time.Duration(seconds) * time.Second).String() },
	}).Parse(pageText)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, p)
	return b.String(), err
}

func unmeasured(t target) string {
	if t.Apart {
		return "not measured: " + t.Command
	}
	return "not measured"
}

// Measured reports whether the row has a value.
func (r row) Measured() bool { return r.Ours != "" }
