package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// DetachOptions says what a supervisor in a process of its own holds, and for how long.
type DetachOptions struct {
	Stack Options
	TTL   time.Duration // 0 means until it is asked to end
}

// SupervisorReport is the one line that a supervisor prints when its stack is up or has failed. Exactly one field is set.
type SupervisorReport struct {
	State *State   `json:"state,omitempty"`
	Error *failure `json:"error,omitempty"`
}

// Report writes the line. A nil err means that the state is good.
func Report(w io.Writer, state State, err error) error {
	report := SupervisorReport{State: &state}
	if err != nil {
		f := toWire(err)
		report = SupervisorReport{Error: &f}
	}
	return json.NewEncoder(w).Encode(report)
}

// Detach starts a supervisor that outlives this process and returns when its stack is up. Where servers are children and
// the caller has no root rights, the supervisor gets them through sudo, if that asks no password.
func Detach(ctx context.Context, o DetachOptions) (State, error) {
	socket, err := socketPath("")
	if err != nil {
		return State{}, err
	}
	picked, err := Pick(ctx, o.Stack)
	if err != nil {
		return State{}, err
	}
	o.Stack.Source = picked.Source
	log, err := os.OpenFile(socket+".log", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return State{}, fmt.Errorf("log of the supervisor: %w", err)
	}
	defer log.Close()
	cmd, err := supervisorCommand(ctx, o.Stack, "--supervisor", "--ttl="+o.TTL.String(), "--socket="+socket)
	if err != nil {
		return State{}, err
	}
	cmd.Stderr = log
	return launchSupervisor(ctx, cmd)
}

// HoldElevated is Supervise for a caller without root rights where Pick says that they are needed: it runs "stack up" through sudo, passes its output on, and
// ends it when ctx ends. An error of the other process, which has said why on stderr, is an *exec.ExitError; ErrNeedRoot
// means that sudo is of no use.
func HoldElevated(ctx context.Context, o SuperviseOptions, stdout, stderr io.Writer, flags ...string) error {
	cmd, err := supervisorCommand(ctx, o.Stack, append(flags, "--lifeline", "--ttl="+o.TTL.String())...)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C reaches this process alone, which ends the other in order
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start with sudo: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start with sudo: %w", err)
	}
	end := context.AfterFunc(ctx, func() { _ = lifeline.Close() }) // its end is all that counts
	defer end()
	return cmd.Wait()
}

// supervisorCommand is this program holding a stack, with root rights unless that is one of containers. It does not end
// with any context: it outlives this process, or ends with its lifeline.
func supervisorCommand(ctx context.Context, o Options, more ...string) (*exec.Cmd, error) {
	executable := o.Executable
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	args := append([]string{"stack", "up", "--services=" + strings.Join(o.services(), ",")}, more...)
	if o.Source != SourceAuto {
		args = append(args, "--source="+string(o.Source))
	}
	if o.Root != "" {
		args = append(args, "--root="+o.Root)
	}
	if n := o.nodes(); n > 1 {
		args = append(args, "--nodes="+strconv.Itoa(n))
	}
	background := context.WithoutCancel(ctx)
	if os.Geteuid() == 0 || o.Source == SourceCompose {
		return exec.CommandContext(background, executable, args...), nil
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return sudo(background, executable, cache, args...)
}

// launchSupervisor starts the command in a session of its own and waits for its report.
func launchSupervisor(ctx context.Context, cmd *exec.Cmd) (State, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return State{}, fmt.Errorf("start the supervisor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return State{}, fmt.Errorf("start the supervisor: %w", err)
	}
	interrupt := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // gone already is as good
	defer interrupt()
	var report SupervisorReport
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &report)
	}
	switch {
	case ctx.Err() != nil:
		return State{}, errors.Join(context.Cause(ctx), cmd.Wait())
	case err != nil:
		return State{}, fmt.Errorf("the supervisor ended without a word: %w", errors.Join(err, cmd.Wait()))
	case report.Error != nil:
		_ = cmd.Wait() // it ends with the code of the error that it has reported
		return State{}, fromWire(*report.Error)
	default:
		return *report.State, nil
	}
}
