package profile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func contains(choices []string, text string) bool { return slices.Contains(choices, text) }

// choiceMessage says that a text is not one of the choices, and which was perhaps meant.
func choiceMessage(text string, choices []string) string {
	message := shown(text) + " is not one of " + strings.Join(choices, ", ")
	if near := Suggest(text, choices); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	return message
}

// numberRange puts the range of a number into words.
func numberRange(f *Field) string {
	unit := ""
	if f.Unit != "" {
		unit = " " + f.Unit
	}
	return rangeWords(f.Range, plainNumber) + unit
}

// durationRange puts the range of a duration, kept in seconds, into words.
func durationRange(r Range) string {
	return rangeWords(r, func(seconds float64) string {
		return durationText(time.Duration(seconds * float64(time.Second)))
	})
}

func rangeWords(r Range, text func(float64) string) string {
	if r.Above {
		return fmt.Sprintf("above %s, at most %s", text(r.Low), text(r.High))
	}
	return fmt.Sprintf("%s to %s", text(r.Low), text(r.High))
}

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// durationText is Go's notation without the zero parts at its end: 1h instead of 1h0m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
