package main

import (
	"context"
	"errors"
	"fmt"
)

// measurement is what one run of either side came to.
type measurement struct {
	PerSecond  float64 `json:"per_second"` // over the measured part
	Count      int64   `json:"count"`      // in all
	CPUSeconds float64 `json:"cpu_seconds"`

	WALPerMessage float64 `json:"wal_per_message,omitempty"` // bytes that the database logged, over the whole run
	LongestPurge  float64 `json:"longest_purge,omitempty"`   // of the inbox, in seconds

	observing shares // of the process's CPU time that observers took, by its profile
	where     where  // the time went
}

// cpuPerMessage returns microseconds.
func (m measurement) cpuPerMessage() float64 { return m.CPUSeconds * 1e6 / float64(m.Count) }

func perSecondOf(m measurement) float64 { return m.PerSecond }

var errNothingDone = errors.New("nothing was done")

func (m measurement) check(who string) error {
	if m.Count == 0 || m.PerSecond <= 0 {
		return fmt.Errorf("%s: %w", who, errNothingDone)
	}
	return nil
}

// side is one of two things that are held against each other.
type side struct {
	name string
	run  func(ctx context.Context) (measurement, error)
}

// pair is one run of each side, next to each other in time.
type pair struct {
	a, b   measurement
	others float64 // see others
}

// pairs runs both sides in turn in the order A B B A, so that a drift of the machine falls on both.
func (e *env) pairs(ctx context.Context, what string, a, b side) ([]pair, error) {
	return e.times(ctx, e.o.pairs, what, a, b)
}

// times is pairs with a number of its own.
func (e *env) times(ctx context.Context, n int, what string, a, b side) ([]pair, error) {
	var done []pair
	for i := range n {
		p := pair{others: others(ctx)}
		first, second := func() (err error) { p.a, err = a.once(ctx); return err }, func() (err error) { p.b, err = b.once(ctx); return err }
		if i%2 == 1 {
			first, second = second, first
		}
		for _, run := range []func() error{first, second} {
			if err := run(); err != nil {
				return nil, fmt.Errorf("%s, pair %d: %w", what, i+1, err)
			}
		}
		done = append(done, p)
		e.others = append(e.others, p.others)
		e.step("%s, pair %d of %d: %s %s, %s %s", what, i+1, n, a.name, perSecond(p.a.PerSecond), b.name, perSecond(p.b.PerSecond))
	}
	return done, nil
}

func (s side) once(ctx context.Context) (measurement, error) {
	m, err := s.run(ctx)
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.name, err)
	}
	return m, m.check(s.name)
}

// ratio returns the median of the pairs' ratios with its interval.
func ratio(pairs []pair, figure func(measurement) float64) interval {
	return bootstrap(of(pairs, func(p pair) float64 { return figure(p.a) / figure(p.b) }))
}

// ratioRow makes the row of a target that is a ratio of two figures.
func (t target) ratioRow(pairs []pair, figure func(measurement) float64, format func(float64) string) row {
	ours := median(of(pairs, func(p pair) float64 { return figure(p.a) }))
	against := median(of(pairs, func(p pair) float64 { return figure(p.b) }))
	return t.of(ratio(pairs, figure), len(pairs), format(ours), format(against))
}
