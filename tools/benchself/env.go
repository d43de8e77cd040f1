package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// env is what measures share: where to run, who to tell, and what was seen on the way. One goroutine uses it.
type env struct {
	o        options
	progress progress
	each     time.Duration // of a step of the measure under way, roughly

	about about
	// Of the measure under way.
	others   []float64
	stealMax float64
}

func newEnv(o options, measures []measure) *env {
	e := &env{o: o, progress: progress{out: os.Stderr, began: time.Now()}}
	for _, m := range measures {
		n, each := m.steps(o)
		e.progress.planned += time.Duration(n) * each
	}
	return e
}

// run carries out the measures and writes the page after each, so that an interruption loses one measure and not all. A
// measure that fails leaves its section as it was, and the others go on.
func (e *env) run(ctx context.Context, measures []measure) error {
	book, err := openBook(e.o.out)
	if err != nil {
		return err
	}
	if e.about, err = aboutOf(ctx, e.o); err != nil {
		return err
	}
	var failed []error
	for i, m := range measures {
		e.progress.say("%d of %d, %s", i+1, len(measures), m.title())
		began := e.progress.done
		s, err := e.measure(ctx, m)
		if ctx.Err() != nil {
			return errors.Join(append(failed, ctx.Err())...)
		}
		n, each := m.steps(e.o)
		e.progress.done = began + time.Duration(n)*each // whatever it took in steps
		if err == nil {
			err = book.keep(s)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.name(), err))
			e.progress.say("%s: %v", m.name(), err)
		}
	}
	return errors.Join(append(failed, book.write(e.o.out))...)
}

// measure carries out one measure and completes its section.
func (e *env) measure(ctx context.Context, m measure) (section, error) {
	_, e.each = m.steps(e.o)
	e.others, e.stealMax = nil, 0
	began := time.Now()
	s, err := m.run(ctx, e)
	if err != nil {
		return s, err
	}
	s.Name, s.Title, s.About, s.Machine = m.name(), m.title(), e.about, machine()
	s.Text = reflow(s.Text)
	s.At, s.TookSeconds, s.StealMax = began.UTC(), time.Since(began).Seconds(), e.stealMax
	if len(e.others) > 0 {
		s.OthersMedian, s.OthersMax = median(e.others), slices.Max(e.others)
	}
	return s, nil
}

// step tells that a step is done.
func (e *env) step(format string, args ...any) {
	e.progress.done += e.each
	e.progress.say(format, args...)
}

// needDatabase returns what to do about the absence of a database.
func (e *env) needDatabase() error {
	if e.o.servers.postgres == "" {
		return fmt.Errorf("%w: give -postgres or $%s", errNoDatabase, variablePostgres)
	}
	return nil
}

var errNoDatabase = errors.New("this measure needs a database")
