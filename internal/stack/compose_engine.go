package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// engine is the docker command. Both methods are told their arguments alone, so that tests can stand in for it.
type engine interface {
	// run returns what the command printed; an error carries the end of it.
	run(ctx context.Context, args ...string) ([]byte, error)
	// follow returns standard output of a command that ends with ctx. Closing it ends the command and waits for it.
	follow(ctx context.Context, args ...string) (io.ReadCloser, error)
}

// docker is the real one. Its zero value is ready.
type docker struct{}

// dockerGrace is how long a docker command may take to give up when its context has ended.
const dockerGrace = 5 * time.Second

// command is in a session of its own: Ctrl-C on the terminal reaches spillway alone, which then takes the containers down
// in order. The whole group is told of the end, since compose is a child of docker.
func (docker) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = dockerGrace
	return cmd
}

// run takes both outputs: compose prints what a container wrote on standard error on its own, and logs are all there.
func (d docker) run(ctx context.Context, args ...string) ([]byte, error) {
	output, err := d.command(ctx, args...).CombinedOutput()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("docker: %w", context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("docker: %w\n%s", err, lastLines(output, logTail))
	default:
		return output, nil
	}
}

func (d docker) follow(ctx context.Context, args ...string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := d.command(ctx, args...)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("docker: %w", err)
	}
	return &followed{output, func() { cancel(); _ = cmd.Wait() }}, nil // it ended because we said so
}

// followed is the output of a running command.
type followed struct {
	io.Reader
	end func()
}

func (f *followed) Close() error {
	f.end()
	return nil
}

// arguments returns what `docker` is called with.
func (c *Compose) arguments(verb ...string) []string {
	return append([]string{"compose", "--project-name", c.project, "--env-file", c.environmentFile(),
		"--file", filepath.Join(c.dir, "compose.yml")}, verb...)
}

func (c *Compose) call(ctx context.Context, verb ...string) ([]byte, error) {
	return c.engine.run(ctx, c.arguments(verb...)...)
}

func (c *Compose) order(ctx context.Context, service string, verb ...string) error {
	if err := c.holds(service); err != nil {
		return err
	}
	_, err := c.call(ctx, append(verb, service)...)
	return err
}

// execute runs a program inside a service's container.
func (c *Compose) execute(ctx context.Context, service string, argv ...string) error {
	if err := c.holds(service); err != nil {
		return err
	}
	_, err := c.call(ctx, append([]string{"exec", "--no-TTY", service}, argv...)...)
	return err
}

func (c *Compose) holds(service string) error {
	if slices.Contains(c.services, service) {
		return nil
	}
	return fmt.Errorf("%w: %q (this stack holds %s)", ErrUnknownService, service, strings.Join(c.services, ", "))
}

// engineAnswers says whether a Docker engine with compose can be used.
func engineAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, engineTimeout, errEngineSilent)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return errNoDocker
	}
	for _, args := range [][]string{{"info"}, {"compose", "version"}} {
		cmd := docker{}.command(ctx, args...)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("docker %s: %w", strings.Join(args, " "), errors.Join(context.Cause(ctx), err))
		}
	}
	return nil
}

var (
	errNoDocker     = errors.New("there is no docker command")
	errEngineSilent = errors.New("the engine does not answer")
)
