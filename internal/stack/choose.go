package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Chosen is a running stack with what a run must know to use it and to let go of it.
type Chosen struct {
	Control
	// Source says where the servers come from; Attached that the stack was up before and stays up after Close.
	Source   Source
	Attached bool
	// Close ends the stack and removes its data, unless it was Attached. Call it once.
	Close func(ctx context.Context) error
}

// Choose brings up, or finds, the best stack for this machine: a registered one, then the root, the host's own servers,
// docker compose. Where none serves, the error wraps ErrUnavailable and says what to do. An error of a source that should
// have served, and of a root that was named and is none, is returned as it is: falling back then would hide it.
func Choose(ctx context.Context, o Options) (*Chosen, error) {
	if err := o.CheckRoot(); err != nil {
		return nil, err
	}
	if o.Source == SourceAuto {
		if chosen, err := chooseAttached(ctx, o); chosen != nil || err != nil {
			return chosen, err
		}
	}
	picked, err := Pick(ctx, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(o.progress(), "servers: %s\n", picked)
	o.Source = picked.Source
	return bringUp(ctx, o)
}

// CheckRoot says whether a root that was named is one, before anything is started or found: the error wraps ErrNoRoot. A
// root is of no interest where another source is asked for.
func (o Options) CheckRoot() error {
	if o.Root == "" || o.wanted() != SourceRoot {
		return nil
	}
	_, err := FindRoot(o.Root)
	return err
}

// Pick returns the source that a start would take: the one asked for, else the first that serves. The error wraps ErrNoRoot
// where a root was named that is none, and ErrUnavailable where nothing serves. Nothing is started.
func Pick(ctx context.Context, o Options) (Candidate, error) {
	if err := o.CheckRoot(); err != nil {
		return Candidate{}, err
	}
	for _, s := range sources() {
		if c := s.candidate(ctx, o); c.Usable() {
			return c, nil
		}
	}
	return Candidate{}, unavailable(ctx, o)
}

// chooseAttached returns the registered stack if it holds all that is asked for.
func chooseAttached(ctx context.Context, o Options) (*Chosen, error) {
	remote, ok, err := AttachRemote(ctx)
	if err != nil || !ok {
		return nil, err
	}
	for _, service := range o.needed() {
		if _, has := remote.Versions()[service]; !has {
			fmt.Fprintf(o.progress(), "the stack that is up has no %s, so it is not used\n", service)
			return nil, nil
		}
	}
	keep := func(context.Context) error { return nil }
	return &Chosen{Control: remote, Source: remote.state.Source, Attached: true, Close: keep}, nil
}

func bringUp(ctx context.Context, o Options) (*Chosen, error) {
	if o.Source == SourceCompose {
		c, err := StartCompose(ctx, o)
		if err != nil {
			return nil, err
		}
		return &Chosen{Control: c, Source: o.Source, Close: c.Close}, nil
	}
	if os.Geteuid() != 0 {
		return startWithSudo(ctx, o)
	}
	s, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Chosen{Control: s, Source: o.Source, Close: s.Close}, nil
}

// startWithSudo starts a supervisor with root rights that ends with this process: its standard input is a pipe that only
// we hold open.
func startWithSudo(ctx context.Context, o Options) (*Chosen, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	socket, err := socketPath(filepath.Join(cache, "run-"+randomHex(4)+".sock"))
	if err != nil {
		return nil, err
	}
	cmd, err := supervisorCommand(ctx, o, "--supervisor", "--socket="+socket, "--lifeline")
	if err != nil {
		return nil, err
	}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	if _, err := launchSupervisor(ctx, cmd); err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	remote, ok, err := attachTo(ctx, socket)
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("%w: the supervisor does not answer", ErrUnavailable), err, lifeline.Close(), cmd.Wait())
	}
	end := func(ctx context.Context) error {
		return errors.Join(remote.Down(ctx), lifeline.Close(), cmd.Wait(), os.Remove(socket+".lock"))
	}
	return &Chosen{Control: remote, Source: o.Source, Close: end}, nil
}

// Candidate is one source of servers, and whether it serves on this machine.
type Candidate struct {
	Source Source
	Detail string // what it is, when usable
	Err    error  // why it is not usable; nil when it is
}

// Usable reports whether the source serves.
func (c Candidate) Usable() bool { return c.Err == nil }

// NeedsRoot reports whether its servers are started with the rights of root; an engine has rights of its own.
func (c Candidate) NeedsRoot() bool { return c.Source != SourceCompose }

// String says in one line what the candidate is or why it does not serve.
func (c Candidate) String() string {
	if c.Err != nil {
		return fmt.Sprintf("%s: no: %v", c.Source, c.Err)
	}
	return fmt.Sprintf("%s: %s", c.Source, c.Detail)
}

// Describe lists every source in the order of choice, with the reason where one does not serve. The first usable one is
// what a run would take, unless a stack is up already. Nothing is started.
func Describe(ctx context.Context, o Options) []Candidate {
	var all []Candidate
	for _, s := range sources() {
		all = append(all, s.candidate(ctx, o))
	}
	return all
}

// place is one source of servers, and the question whether it serves.
type place struct {
	source  Source
	examine func(context.Context, Options) (detail string, err error)
}

// sources returns them in the order of choice. Each is asked only when those before it do not serve: an engine that hangs
// must not delay those who need none.
func sources() []place {
	return []place{{SourceRoot, examineRoot}, {SourceHost, examineHost}, {SourceCompose, examineEngine}}
}

// errNotAsked is why a source does not serve when another one, or a root, was named.
var errNotAsked = errors.New("another source was asked for")

// candidate asks the place, unless something else was asked for.
func (p place) candidate(ctx context.Context, o Options) Candidate {
	if w := o.wanted(); w != SourceAuto && w != p.source {
		return Candidate{Source: p.source, Err: errNotAsked}
	}
	detail, err := p.examine(ctx, o)
	return Candidate{Source: p.source, Detail: detail, Err: err}
}

func examineRoot(ctx context.Context, o Options) (string, error) {
	root, err := FindRoot(o.Root)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Debian %s in %s", root.Suite, root.Path), childRights(ctx)
}

func examineHost(ctx context.Context, o Options) (string, error) {
	if _, err := hostRoot(o.services()); err != nil {
		return "", err
	}
	return "the distribution's own servers", childRights(ctx)
}

func examineEngine(ctx context.Context, o Options) (string, error) {
	if o.nodes() > 1 {
		return "", fmt.Errorf("%w: containers are of a single node", ErrNoCluster)
	}
	return "docker compose", engineAnswers(ctx)
}

// childRights says whether servers can be started as children: by root on Linux, or through sudo.
func childRights(ctx context.Context) error {
	if err := supported(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return nil
	}
	_, err := sudo(ctx, "true", "/")
	return err
}

// unavailable says why each source fails and what a person can do about it.
func unavailable(ctx context.Context, o Options) error {
	var reasons []string
	for _, c := range Describe(ctx, o) {
		if !errors.Is(c.Err, errNotAsked) {
			reasons = append(reasons, c.String())
		}
	}
	return fmt.Errorf("%w (%s): run `spillway stack setup` as root or with sudo, start a Docker engine, "+
		"or give the addresses of your own servers with --uri and --postgres", ErrUnavailable, strings.Join(reasons, "; "))
}
