package drill

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table writes the outcomes for people.
func Table(w io.Writer, all []Outcome) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "drill\toutcome\tseconds\tevidence")
	for i := range all {
		o := &all[i]
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%s\n", o.Name, o.Status, o.Seconds, o.words())
		for _, why := range o.Reasons {
			fmt.Fprintf(t, "\t\t\t  %s\n", plain(why))
		}
	}
	return t.Flush()
}

// plain keeps what a server said from drawing on the terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// JSON writes the outcomes for programs.
func JSON(w io.Writer, all []Outcome) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Schema string    `json:"schema"`
		Drills []Outcome `json:"drills"`
	}{"spillway.drills/1", all})
}

type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Time     float64    `xml:"time,attr"`
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    float64  `xml:"time,attr"`
	Failure *message `xml:"failure,omitempty"`
	Skipped *message `xml:"skipped,omitempty"`
	Output  string   `xml:"system-out,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
}

// JUnit writes the outcomes as a CI system reads them.
func JUnit(w io.Writer, all []Outcome) error {
	s := suite{Name: "spillway drill", Tests: len(all)}
	for i := range all {
		o := &all[i]
		c := testcase{Name: o.Name, Class: "spillway.drill", Time: o.Seconds, Output: o.words()}
		why := &message{plain(strings.Join(o.Reasons, "; "))}
		switch o.Status {
		case Skipped:
			c.Skipped = why
			s.Skipped++
		case Fail, Inconclusive:
			c.Failure = why
			s.Failures++
		}
		s.Time += o.Seconds
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Table writes how often each kind of fault has met each setting, all kinds included that could have been drawn.
func (c *Coverage) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "fault\t%s\t\n", strings.Join(c.columns, "\t"))
	var kinds []string
	for _, one := range candidates() {
		kind, _, _ := strings.Cut(strings.TrimPrefix(one.words, "kind: "), ",")
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		fmt.Fprintf(t, "%s\t", kind)
		for _, column := range c.columns {
			fmt.Fprintf(t, "%d\t", c.cells[kind][column])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
