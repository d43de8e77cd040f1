// Benchself measures spillway itself: each target that the project has set for its own speed and truth, against something
// plain that does the same, in turn and on the same servers, each run a process of its own. What came out it keeps as a
// section for each measure and writes as a page of documentation.
//
// It starts no server: addresses are given. It judges by the bound of the interval that speaks against spillway.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// options are the command line's.
type options struct {
	servers  servers
	program  string // the one under test
	out      string // the page; "-" is standard output
	pairs    int
	only     []string
	memory   bool // the measure of memory too, which takes longer than all others
	child    string
	load     closedLoad
	millions int // of messages in the measure of memory
}

// servers are addresses, passwords included. A child gets them in its environment, never as arguments.
type servers struct{ uri, management, postgres string }

// closedLoad is what both sides of the comparison with the plain loop are told.
type closedLoad struct {
	duration, warmup time.Duration
	window, prefetch int
	size             int // body bytes
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
	if o.child != "" {
		return beChild(ctx, o)
	}
	measures, err := chosen(o)
	if err != nil {
		return err
	}
	return newEnv(o, measures).run(ctx, measures)
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("benchself", flag.ContinueOnError)
	f.StringVar(&o.servers.uri, "uri", "", "broker ($"+variableURI+")")
	f.StringVar(&o.servers.management, "management", "", "its management API ($"+variableManagement+")")
	f.StringVar(&o.servers.postgres, "postgres", "", "database ($"+variablePostgres+")")
	f.StringVar(&o.program, "spillway", "bin/spillway", "the program under test")
	f.StringVar(&o.out, "o", "docs/performance.md", "the page to write, its sections beside it in a folder; - is standard output, and keeps nothing")
	f.IntVar(&o.pairs, "pairs", 10, "pairs of runs for each comparison")
	only := f.String("only", "", "measure these alone, by name, with commas: "+strings.Join(names(), ", "))
	f.BoolVar(&o.memory, "memory", false, "measure the memory of ten million messages too")
	f.IntVar(&o.millions, "millions", memoryMillions, "how many million messages that is")
	f.DurationVar(&o.load.duration, "d", 5*time.Second, "measured part of a run against the plain loop")
	f.DurationVar(&o.load.warmup, "warmup", time.Second, "load before it")
	f.IntVar(&o.load.window, "window", 200, "unconfirmed messages, also of relay and direct publishing")
	f.IntVar(&o.load.prefetch, "prefetch", 200, "unacked messages")
	f.IntVar(&o.load.size, "size", 512, "body bytes")
	f.StringVar(&o.child, "child", "", "internal: carry out the task on standard input")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	o.servers.fill()
	err = o.check()
	return o, err
}

// fill takes what was not given from the environment. It is no default of the flags: a help text would show the passwords.
func (s *servers) fill() {
	s.uri = cmp.Or(s.uri, os.Getenv(variableURI))
	s.management = cmp.Or(s.management, os.Getenv(variableManagement))
	s.postgres = cmp.Or(s.postgres, os.Getenv(variablePostgres))
}

func (o *options) check() error {
	switch {
	case o.servers.uri == "":
		return fmt.Errorf("no broker: give -uri or $%s", variableURI)
	case o.child == "" && o.servers.management == "":
		return fmt.Errorf("no management API: give -management or $%s; what runs leave on the broker is removed with it", variableManagement)
	case o.pairs < 1:
		return fmt.Errorf("-pairs %d: want 1 or more", o.pairs)
	default:
		return nil
	}
}
