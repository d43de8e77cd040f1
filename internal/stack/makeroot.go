package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// MakeOptions says how to make a root. The zero value does what `spillway stack setup` does, silently.
type MakeOptions struct {
	Executable string    // as in Options
	Progress   io.Writer // one line for each step; nil means silent
}

// MakeRoot returns the tree that servers are started in and makes it where there is none: about 75 s and 0.9 GB, in the
// cache folder. It tries the suites in turn, then the distribution's own packages (a Root with Path "/"), and says on
// Progress which and why. Without root rights it calls itself through sudo, if that asks no password, else the error
// wraps ErrNeedRoot. Two makers wait for each other; what an interrupted one left is removed first.
func MakeRoot(ctx context.Context, o MakeOptions) (*Root, error) {
	if root, err := FindRoot(""); err == nil {
		return root, nil
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Executable == "" {
		executable, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		o.Executable = executable
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	// Made here, not under sudo, so that the folder belongs to the caller.
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	if os.Geteuid() != 0 {
		return makeWithSudo(ctx, o, cache)
	}
	return makeRoot(ctx, o, cache)
}

// makeWithSudo runs the set-up verb with root rights and the caller's cache folder.
func makeWithSudo(ctx context.Context, o MakeOptions, cache string) (*Root, error) {
	cmd, err := sudo(ctx, o.Executable, cache, "stack", "setup")
	if err != nil {
		return nil, fmt.Errorf("make a stack root: %w", err)
	}
	cmd.Stdout, cmd.Stderr = o.Progress, o.Progress
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("make a stack root with sudo: %w", err)
	}
	if root, err := FindRoot(""); err == nil {
		return root, nil
	}
	return hostRoot(AllServices())
}

// sudo returns a command line of this program with root rights, for the caller's cache folder; ErrNeedRoot where sudo is
// missing or would ask for a password.
func sudo(ctx context.Context, executable, cache string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath("sudo")
	if err != nil {
		return nil, fmt.Errorf("%w, and there is no sudo", ErrNeedRoot)
	}
	if err := exec.CommandContext(ctx, path, "-n", "true").Run(); err != nil {
		return nil, fmt.Errorf("%w, and sudo asks for a password", ErrNeedRoot)
	}
	line := []string{"-n", "--", "env", "XDG_CACHE_HOME=" + filepath.Dir(cache), executable}
	return exec.CommandContext(ctx, path, append(line, args...)...), nil
}
