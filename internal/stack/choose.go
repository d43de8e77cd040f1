package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
// have served is returned as it is: falling back then would hide it.
func Choose(ctx context.Context, o Options) (*Chosen, error) {
	if o.Source == SourceAuto {
		if chosen, err := chooseAttached(ctx, o); chosen != nil || err != nil {
			return chosen, err
		}
	}
	for _, candidate := range candidates() {
		if c := candidate(ctx, o); c.Usable() && (o.Source == SourceAuto || o.Source == c.Source) {
			fmt.Fprintf(o.progress(), "servers: %s\n", c)
			o.Source = c.Source
			return bringUp(ctx, o)
		}
	}
	return nil, unavailable(ctx, o)
}

// chooseAttached returns the registered stack if it holds all that is asked for.
func chooseAttached(ctx context.Context, o Options) (*Chosen, error) {
	remote, ok, err := AttachRemote(ctx)
	if err != nil || !ok {
		return nil, err
	}
	for _, service := range o.services() {
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
	for _, candidate := range candidates() {
		all = append(all, candidate(ctx, o))
	}
	return all
}

// candidates returns the sources in the order of choice. Each is asked only when those before it do not serve: an engine
// that hangs must not delay those who need none.
func candidates() []func(context.Context, Options) Candidate {
	return []func(context.Context, Options) Candidate{rootCandidate, hostCandidate, composeCandidate}
}

func rootCandidate(ctx context.Context, o Options) Candidate {
	root, err := FindRoot(o.Root)
	if err != nil {
		return Candidate{Source: SourceRoot, Err: err}
	}
	return Candidate{Source: SourceRoot, Detail: fmt.Sprintf("Debian %s in %s", root.Suite, root.Path), Err: childRights(ctx)}
}

func hostCandidate(ctx context.Context, o Options) Candidate {
	if _, err := hostRoot(o.services()); err != nil {
		return Candidate{Source: SourceHost, Err: err}
	}
	return Candidate{Source: SourceHost, Detail: "the distribution's own servers", Err: childRights(ctx)}
}

func composeCandidate(ctx context.Context, _ Options) Candidate {
	return Candidate{Source: SourceCompose, Detail: "docker compose", Err: engineAnswers(ctx)}
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
		if o.Source == SourceAuto || o.Source == c.Source {
			reasons = append(reasons, c.String())
		}
	}
	return fmt.Errorf("%w (%s): run `spillway stack setup` as root or with sudo, start a Docker engine, "+
		"or give the addresses of your own servers with --uri and --postgres", ErrUnavailable, strings.Join(reasons, "; "))
}

// engineAnswers says whether a Docker engine with compose can be used.
func engineAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("there is no docker command")
	}
	for _, args := range [][]string{{"info"}, {"compose", "version"}} {
		if err := exec.CommandContext(ctx, "docker", args...).Run(); err != nil {
			return fmt.Errorf("docker %s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}
