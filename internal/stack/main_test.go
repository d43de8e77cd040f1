//go:build linux

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// executable is the spillway binary that the tests start servers with; TestMain builds it, or is told where it is.
var executable = os.Getenv(executableVariable)

const executableVariable = "SPILLWAY_TEST_EXECUTABLE"

func TestMain(m *testing.M) {
	if executable != "" {
		goleak.VerifyTestMain(m)
		return
	}
	dir, err := os.MkdirTemp("", "stack")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	executable = filepath.Join(dir, "spillway")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", executable, "spillway/cmd/spillway")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build spillway for the tests:", err)
		os.Exit(1)
	}
	if os.Geteuid() != 0 {
		code := elevated()
		os.RemoveAll(dir)
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// elevated runs these tests again through sudo and returns their exit code: namespaces need root rights. The root that
// they use is the caller's.
func elevated() int {
	cache, err := CacheDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd, err := sudo(context.Background(), "env", cache, append([]string{
		executableVariable + "=" + executable, "PATH=" + os.Getenv("PATH"), os.Args[0],
	}, os.Args[1:]...)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the stack's tests start servers in namespaces of their own:", err)
		return 1
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}
