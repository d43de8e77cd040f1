package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// measure is one thing that is measured, with what was set as its target.
type measure interface {
	// name is that of its section and of -only; title is what people read.
	name() string
	title() string
	// targets are the rows that it fills, in the order of the table.
	targets() []target
	// steps says of how many parts it consists, and how long one takes, roughly: for the time left.
	steps(o options) (n int, each time.Duration)
	// run measures. The rows of its section are those of targets.
	run(ctx context.Context, e *env) (section, error)
}

// all lists every measure in the order of the page.
func all() []measure {
	return []measure{ceiling{}, observers{}, schedule{}, inboxFeed{}, retention{}, goodput{}, bareLoop{}, relay{}, memory{}}
}

func names() []string {
	var out []string
	for _, m := range all() {
		out = append(out, m.name())
	}
	return out
}

// chosen returns what the options ask for: everything but the memory, unless they say otherwise.
func chosen(o options) (out []measure, err error) {
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("-only %q: there are %v", name, names())
		}
	}
	for _, m := range all() {
		wanted := slices.Contains(o.only, m.name())
		if len(o.only) == 0 {
			wanted = o.memory || m.name() != memory{}.name()
		}
		if wanted {
			out = append(out, m)
		}
	}
	return out, nil
}
