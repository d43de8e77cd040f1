package result

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// whole writes a count with separated thousands.
func whole(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// number3 writes a number with about three digits that count, and thousands separated.
func number3(x float64) string {
	switch size := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0) || size >= 1e15:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case size >= 100 || x == math.Trunc(x):
		return whole(int64(math.Round(x)))
	case size >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case size >= 0.01:
		return strconv.FormatFloat(x, 'f', 2, 64)
	default:
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
}

// rate writes a measure that may be missing.
func rate(x *float64) string {
	if x == nil {
		return "-"
	}
	return number3(*x)
}

// span writes seconds in the unit that suits a reader: 850 µs, 12.3 ms, 4.56 s, 2 min 5 s.
func span(seconds float64) string {
	switch size := math.Abs(seconds); {
	case seconds == 0:
		return "0 s"
	case size < 0.0009995:
		return number3(math.Round(seconds*1e6)) + " µs"
	case size < 0.9995:
		return digits3(seconds*1e3) + " ms"
	case size < 119.95:
		return digits3(seconds) + " s"
	case size < 1e9:
		total := int64(math.Round(seconds))
		return whole(total/60) + " min " + strconv.FormatInt(max(total%60, -(total%60)), 10) + " s"
	default:
		return number3(seconds) + " s"
	}
}

// digits3 writes three digits that count, of a number from 1 to 1000.
func digits3(x float64) string {
	switch size := math.Abs(x); {
	case size < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case size < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
}

// table is a small aligned table: the first column to the left, the others to the right.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// table writes the heads as the section's title, and the rows under them.
func (s *summary) table(t table, empty string) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(plain(cell)))
		}
	}
	s.section(strings.TrimPrefix(line(t.head, widths, 2), "  "))
	for _, row := range t.rows {
		s.printf("%s\n", line(row, widths, 0))
	}
	if len(t.rows) == 0 {
		s.printf("  %s\n", empty)
	}
}

// line writes one row. outdent moves the first column to the left and keeps the others in place.
func line(cells []string, widths []int, outdent int) string {
	var b strings.Builder
	b.WriteString("  ")
	for i, cell := range cells {
		cell = plain(cell)
		gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i == 0 {
			b.WriteString(cell + gap + strings.Repeat(" ", outdent))
		} else {
			b.WriteString("  " + gap + cell)
		}
	}
	return b.String()
}
