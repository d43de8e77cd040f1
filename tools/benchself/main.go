// Benchself holds the speed of `spillway run` against a plain loop on the same broker: in turn, each run a process of its
// own, and writes what came out as a page of documentation. The plain loop is this program's own child; it does what
// common Go load tools do, with the properties and headers that spillway's messages carry, and measures nothing but counts.
//
// It starts no server: the broker is given by address. It judges nothing either; the page says what was measured.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// options are the command line's.
type options struct {
	uri        string
	management string
	spillway   string // the program under test
	out        string // the page; "-" is standard output
	pairs      int
	load       loadOptions
	plain      bool // be the plain loop
}

// loadOptions are what both sides are told.
type loadOptions struct {
	duration time.Duration
	warmup   time.Duration
	window   int
	prefetch int
	size     int // body bytes
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchself:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.plain {
		m, err := runPlain(ctx, o.uri, o.load)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	began := time.Now()
	c, err := compare(ctx, o)
	if err != nil {
		return err
	}
	return write(o.out, page(o, c, machine(), began))
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("benchself", flag.ContinueOnError)
	f.StringVar(&o.uri, "uri", os.Getenv("SPILLWAY_URI"), "broker ($SPILLWAY_URI)")
	f.StringVar(&o.management, "management", os.Getenv("SPILLWAY_MANAGEMENT"), "its management API ($SPILLWAY_MANAGEMENT)")
	f.StringVar(&o.spillway, "spillway", "bin/spillway", "the program under test")
	f.StringVar(&o.out, "o", "docs/performance.md", "the page to write; - is standard output")
	f.IntVar(&o.pairs, "pairs", 10, "pairs of runs")
	f.DurationVar(&o.load.duration, "d", 5*time.Second, "measured part of a run")
	f.DurationVar(&o.load.warmup, "warmup", time.Second, "load before it")
	f.IntVar(&o.load.window, "window", 200, "unconfirmed messages")
	f.IntVar(&o.load.prefetch, "prefetch", 200, "unacked messages")
	f.IntVar(&o.load.size, "size", 512, "body bytes")
	f.BoolVar(&o.plain, "plain", false, "be the plain loop, and print its figures")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.uri == "" {
		return o, fmt.Errorf("no broker: give -uri or $SPILLWAY_URI")
	}
	if o.pairs < 1 {
		return o, fmt.Errorf("-pairs %d: want 1 or more", o.pairs)
	}
	return o, nil
}

func write(path, text string) error {
	if path == "-" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
