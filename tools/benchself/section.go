package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// section is what one measure came to. It is kept as a file, so that a page can be made again when only one was measured.
type section struct {
	Name         string    `json:"name"`
	Title        string    `json:"title"`
	At           time.Time `json:"at"`
	TookSeconds  float64   `json:"took_seconds"`
	Machine      string    `json:"machine"`
	About        about     `json:"about"`
	OthersMedian float64   `json:"others_median"` // share of the machine's CPU time that was in use while no side ran
	OthersMax    float64   `json:"others_max"`
	StealMax     float64   `json:"steal_max"` // greatest share of CPU time that a hypervisor took in one run
	Text         string    `json:"text"`      // how it was measured
	Rows         []row     `json:"rows"`
	Notes        []string  `json:"notes"` // what else was seen
	Runs         table     `json:"runs"`
}

// table is the single runs, ready to print.
type table struct {
	Columns []string   `json:"columns"`
	Lines   [][]string `json:"lines"`
}

func (t *table) add(cells ...string) { t.Lines = append(t.Lines, cells) }

// book is the sections of a page, by name, and where they are kept.
type book struct {
	dir      string // "" keeps nothing
	sections map[string]section
}

// openBook reads the sections that belong to a page: the files in the folder with its name. A page on standard output has
// none but what is measured now.
func openBook(page string) (*book, error) {
	b := &book{sections: map[string]section{}}
	if page == "-" {
		return b, nil
	}
	b.dir = strings.TrimSuffix(page, filepath.Ext(page)) + ".d"
	for _, name := range names() {
		data, err := os.ReadFile(b.path(name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var s section
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", name, err)
		}
		b.sections[name] = s
	}
	return b, nil
}

func (b *book) path(name string) string { return filepath.Join(b.dir, name+".json") }

// keep takes a section in, and saves it.
func (b *book) keep(s section) error {
	b.sections[s.Name] = s
	if b.dir == "" {
		return nil
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("section %s: %w", s.Name, err)
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.path(s.Name), append(data, '\n'), 0o644)
}

// write makes the page from all sections.
func (b *book) write(path string) error {
	text, err := render(b.sections)
	if err != nil {
		return err
	}
	if path == "-" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
