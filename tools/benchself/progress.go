package main

import (
	"fmt"
	"io"
	"time"
)

// progress says what was done, and how long the rest will take: as much longer or shorter than planned as what is done.
type progress struct {
	out           io.Writer
	began         time.Time
	planned, done time.Duration // of all steps, as they were estimated
}

func (p *progress) say(format string, args ...any) {
	now := time.Since(p.began)
	fmt.Fprintf(p.out, "%6s  %s%s\n", now.Round(time.Second), fmt.Sprintf(format, args...), p.left(now))
}

// left returns words for the time left; "" before anything is known, and at the end.
func (p *progress) left(elapsed time.Duration) string {
	rest := p.planned - p.done
	if p.planned == 0 || rest <= 0 {
		return ""
	}
	if p.done > 0 {
		rest = time.Duration(float64(rest) * float64(elapsed) / float64(p.done))
	}
	return fmt.Sprintf(" (%s left)", rest.Round(time.Second))
}
