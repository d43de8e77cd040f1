//go:build linux

package stack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// executable is the spillway binary that the tests start servers with; TestMain builds it.
var executable string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "stack")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	executable = filepath.Join(dir, "spillway")
	build := exec.Command("go", "build", "-o", executable, "spillway/cmd/spillway")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build spillway for the tests:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}
