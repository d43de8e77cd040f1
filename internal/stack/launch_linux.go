package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// launcher starts first processes from one locked thread. The parent-death signal follows the thread that started a
// child, not the process, and the Go runtime ends threads when it likes: only a locked one stays.
type launcher struct {
	requests chan launchRequest
	done     chan struct{}
}

type launchRequest struct {
	cmd    *exec.Cmd
	result chan error
}

// newLauncher returns a running launcher. Close it only after its processes have ended: its thread's end kills them.
func newLauncher() *launcher {
	l := &launcher{requests: make(chan launchRequest), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	defer close(l.done)
	for r := range l.requests {
		r.result <- r.cmd.Start()
	}
}

func (l *launcher) start(cmd *exec.Cmd) error {
	r := launchRequest{cmd, make(chan error, 1)}
	l.requests <- r
	return <-r.result
}

func (l *launcher) close() {
	close(l.requests)
	<-l.done
}

// process is one first process and, through it, a server.
type process struct {
	cmd      *exec.Cmd
	lifeline *os.File      // write end; closing it ends the child too
	ordered  atomic.Bool   // somebody asked it to end
	ended    chan struct{} // closed when the process is gone and reaped
	err      error         // how it ended; read after ended only
}

// launch starts the executable as first process of new namespaces. Output goes to log; held is a file that the child
// keeps open for as long as it lives.
func (l *launcher) launch(executable, name string, spec childSpec, log, held *os.File) (*process, error) {
	orders, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("orders for %s: %w", name, err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("lifeline for %s: %w", name, err)
	}
	defer read.Close()
	cmd := &exec.Cmd{
		Path:        executable,
		Args:        []string{"spillway", "server", name},
		Env:         []string{childVariable + "=" + string(orders)},
		Stdout:      log,
		Stderr:      log,
		ExtraFiles:  []*os.File{read, held},
		SysProcAttr: namespaces(),
	}
	if err := l.start(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s in namespaces of its own: %w", name, err), write.Close())
	}
	p := &process{cmd: cmd, lifeline: write, ended: make(chan struct{})}
	go p.wait()
	return p, nil
}

// namespaces asks for PID, mount and IPC namespaces (the last so that a killed PostgreSQL leaves no shared memory), a
// session of its own (so that Ctrl-C on the terminal reaches spillway alone) and death with the parent.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
}

func (p *process) wait() {
	p.err = p.cmd.Wait()
	_ = p.lifeline.Close() // nobody is left to read it
	close(p.ended)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// alive reports whether the process has not ended yet.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
