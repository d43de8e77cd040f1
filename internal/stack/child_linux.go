package stack

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// lifelineFD is the read end of a pipe whose write end only the parent holds; it is the first of exec.Cmd.ExtraFiles.
const lifelineFD = 3

// runChild prepares the namespaces, starts the server and waits for its end.
func runChild(spec childSpec) (int, error) {
	signals := make(chan os.Signal, 64) // more than a person can send before the first is forwarded
	signal.Notify(signals, forwarded...)
	orphaned := watchParent()
	if err := isolate(spec); err != nil {
		return 0, err
	}
	if err := limitOpenFiles(spec.OpenFiles); err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(spec.Argv[0], spec.Argv, &syscall.ProcAttr{
		Env:   spec.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: uint32(spec.UID), Gid: uint32(spec.GID)}},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	go forward(signals, pid)
	ended := make(chan reaped, 1) // the wait must not hang on when the parent's death wins
	go func() { ended <- reap(pid) }()
	select {
	case <-orphaned:
		return 0, errOrphaned // with this process the kernel ends all others of the namespace
	case r := <-ended:
		return r.code, r.err
	}
}

var errOrphaned = errors.New("spillway is gone")

// reaped is how a server ended.
type reaped struct {
	code int
	err  error
}

// forwarded are the signals that a server may want to see. SIGSTOP and SIGKILL cannot be caught; Control handles them.
var forwarded = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
}

// watchParent returns a channel that closes when the parent is gone, which ends the only write end of the pipe. It backs
// the parent-death signal, which is lost when the parent dies before the child has asked for it.
func watchParent() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		_, _ = os.NewFile(lifelineFD, "lifeline").Read(make([]byte, 1)) // nothing is ever written: it returns at the end
		close(gone)
	}()
	return gone
}

func forward(signals <-chan os.Signal, pid int) {
	for s := range signals {
		_ = syscall.Kill(pid, s.(syscall.Signal)) // the server may be gone already; reap notices
	}
}

// isolate makes the mounts private, gives the server /dev, /proc and empty private folders, and enters the root.
func isolate(spec childSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if spec.Root != "/" {
		if err := unix.Mount("/dev", filepath.Join(spec.Root, "dev"), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind /dev: %w", err)
		}
	}
	if err := unix.Mount("proc", filepath.Join(spec.Root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range spec.Private {
		if err := unix.Mount("tmpfs", filepath.Join(spec.Root, dir), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("mount a private %s: %w", dir, err)
		}
	}
	if err := unix.Chroot(spec.Root); err != nil {
		return fmt.Errorf("enter root %s: %w", spec.Root, err)
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return fmt.Errorf("enter data folder: %w", err)
	}
	return nil
}

// limitOpenFiles sets the limit for the server, as high as the rights allow. Erlang sizes tables by it, so an unlimited
// one would cost memory.
func limitOpenFiles(n uint64) error {
	if n == 0 {
		return nil
	}
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
	if !errors.Is(err, syscall.EPERM) {
		return err
	}
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	have.Cur = min(n, have.Max)
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &have)
}

// reap waits for every process of the namespace, orphans included, until the server itself has ended.
func reap(server int) reaped {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return reaped{err: fmt.Errorf("wait for the server: %w", err)}
		case pid == server && status.Exited():
			return reaped{code: status.ExitStatus()}
		case pid == server && status.Signaled():
			return reaped{code: 128 + int(status.Signal())}
		}
	}
}

// supported says whether servers can be children here.
func supported() error { return nil }
