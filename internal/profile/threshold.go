package profile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrThreshold is wrapped by every error of ParseThreshold.
var ErrThreshold = errors.New("is not a threshold; want a path into result.json, one of < <= > >= ==, and a number or a duration, such as latency_seconds.confirm.p99<50ms")

// Threshold is a condition on one number of a result.
type Threshold struct {
	Path  string  // into result.json, dotted
	Op    string  // "<", "<=", ">", ">=" or "=="
	Value float64 // a duration counts in seconds
	Text  string  // as written
}

var (
	thresholdShape = regexp.MustCompile(`^([^<>=]*)(<=|>=|==|<|>)([^<>=]*)$`)
	pathShape      = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

// ParseThreshold reads a threshold such as "rates.applied_per_second>=1000". Blanks around the parts are ignored. Its
// errors wrap ErrThreshold.
func ParseThreshold(text string) (Threshold, error) {
	parts := thresholdShape.FindStringSubmatch(text)
	if parts == nil {
		return Threshold{}, fmt.Errorf("%s %w", shown(text), ErrThreshold)
	}
	t := Threshold{Path: strings.TrimSpace(parts[1]), Op: parts[2], Text: text}
	if !pathShape.MatchString(t.Path) {
		return Threshold{}, fmt.Errorf("%s %w", shown(text), ErrThreshold)
	}
	value := strings.TrimSpace(parts[3])
	number, ok := parseNumber(value)
	if !ok {
		d, isDuration := parseDuration(value)
		if !isDuration {
			return Threshold{}, fmt.Errorf("%s %w", shown(text), ErrThreshold)
		}
		number = d.Seconds()
	}
	t.Value = number
	return t, nil
}

// Holds reports whether an observed number meets the threshold. NaN meets none.
func (t Threshold) Holds(observed float64) bool {
	switch t.Op {
	case "<":
		return observed < t.Value
	case "<=":
		return observed <= t.Value
	case ">":
		return observed > t.Value
	case ">=":
		return observed >= t.Value
	case "==":
		return observed == t.Value
	default:
		return false
	}
}

// ParsedThresholds returns the thresholds of a loaded profile, all of which parse.
func (p *Profile) ParsedThresholds() []Threshold {
	out := make([]Threshold, 0, len(p.Thresholds))
	for _, text := range p.Thresholds {
		if t, err := ParseThreshold(text); err == nil {
			out = append(out, t)
		}
	}
	return out
}
