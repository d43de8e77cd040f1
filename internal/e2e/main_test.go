// Package e2e holds tests of the whole program: the binary is built once and run as a person would run it, against real
// servers. It has no code of its own.
//
// Runs that need no fault of a server share the servers of SPILLWAY_TEST_URI, SPILLWAY_TEST_MANAGEMENT and
// SPILLWAY_TEST_POSTGRES, each with a virtual host and schema of its own. Those that stop or kill servers have a stack of
// their own (see ownStack), or start one as `spillway run` does.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// suite is what all tests share. It is written by TestMain before the first test and read only after that.
var suite struct {
	repository string // folder with go.mod
	binary     string // cmd/spillway of this very tree
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// together is how many tests run at once on a machine with fewer processors: they wait for servers and for the end of
// loads of some hundred messages a second, and compute little.
const together = 4

func testMain(m *testing.M) int {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = parallel.Value.Set(strconv.Itoa(max(together, runtime.GOMAXPROCS(0)))) // a number is never refused
	}
	dir, err := os.MkdirTemp("", "spillway-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	suite.repository, err = filepath.Abs("../..")
	if err == nil {
		suite.binary = filepath.Join(dir, "spillway")
		err = build(suite.repository, suite.binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := stopOwnStack(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// build makes the binary of a source tree.
func build(tree, binary string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", binary}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/spillway")...)
	cmd.Dir = tree
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", tree, err, output)
	}
	return nil
}
