package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"spillway/internal/broker/rabbit"
	"spillway/internal/stack"
)

// shared are the servers that all tests without faults use.
type shared struct{ uri, management, postgres string }

func sharedServers(t *testing.T) shared {
	t.Helper()
	s := shared{os.Getenv("SPILLWAY_TEST_URI"), os.Getenv("SPILLWAY_TEST_MANAGEMENT"), os.Getenv("SPILLWAY_TEST_POSTGRES")}
	if s.uri == "" || s.management == "" || s.postgres == "" {
		t.Fatal("SPILLWAY_TEST_URI, SPILLWAY_TEST_MANAGEMENT and SPILLWAY_TEST_POSTGRES name no servers: run make test")
	}
	s.management = withoutUser(t, s.management)
	return s
}

// withoutUser takes the credentials out of the management API's address, so that those of the broker's count: tests log
// in as users of several kinds.
func withoutUser(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = nil
	return u.String()
}

// env gives the addresses to a call as a person with passwords would: not on the command line.
// An empty variable is none.
func (s shared) env() []string {
	return []string{"SPILLWAY_URI=" + s.uri, "SPILLWAY_MANAGEMENT=" + s.management, "SPILLWAY_POSTGRES=" + s.postgres}
}

// api returns a client of the management API.
func (s shared) api(t *testing.T) *rabbit.Management {
	t.Helper()
	broker, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	config := rabbit.ManagementConfig{URL: s.management, Username: broker.User.Username()}
	config.Password, _ = broker.User.Password()
	m, err := rabbit.NewManagement(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// nothingLeft fails when the run's virtual host or schema is still there.
func (s shared) nothingLeft(t *testing.T, runID string) {
	t.Helper()
	vhosts, err := s.api(t).ListVhosts(t.Context(), rabbit.VhostPrefix+runID)
	if err != nil || len(vhosts) > 0 {
		t.Errorf("virtual hosts are left: %v %v", vhosts, err)
	}
	if schemas := s.schemas(t, "spillway_"+runID); len(schemas) > 0 {
		t.Errorf("schemas are left: %v", schemas)
	}
}

func (s shared) schemas(t *testing.T, prefix string) []string {
	t.Helper()
	conn := s.connect(t)
	rows, err := conn.Query(t.Context(), "select nspname::text from pg_namespace where starts_with(nspname, $1)", prefix)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (s shared) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // a closed server is as good
	return conn
}

// own is a stack for the tests that break servers. It is made when the first of them asks.
var own struct {
	once  sync.Once
	mu    sync.Mutex // one test at a time: a stopped server is stopped for all
	err   error
	cmd   *exec.Cmd
	end   io.Closer // its standard input: the stack ends with it, also when this process is killed
	cache string
}

// ownStack returns the environment in which spillway finds the stack, and holds it until the test is over.
func ownStack(t *testing.T) []string {
	t.Helper()
	own.once.Do(func() { own.err = startOwnStack() })
	if own.err != nil {
		t.Fatal(own.err)
	}
	own.mu.Lock()
	t.Cleanup(own.mu.Unlock)
	return []string{"XDG_CACHE_HOME=" + own.cache}
}

// startOwnStack registers the stack in a cache folder of its own, so that nobody else finds it.
func startOwnStack() error {
	var err error
	if own.cache, err = os.MkdirTemp("", "spw-"); err != nil { // short: a socket's path has 108 bytes
		return err
	}
	own.cmd = exec.Command(suite.binary, append([]string{"stack", "up", "--supervisor", "--lifeline"}, rootFlag()...)...)
	own.cmd.Env = append(cleanEnvironment(), "XDG_CACHE_HOME="+own.cache)
	own.cmd.Stderr = os.Stderr
	if own.end, err = own.cmd.StdinPipe(); err != nil {
		return err
	}
	output, err := own.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := own.cmd.Start(); err != nil {
		return err
	}
	var report stack.SupervisorReport
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &report)
	}
	if err != nil || report.State == nil {
		return fmt.Errorf("no stack (run make test): %w %s", err, line)
	}
	return nil
}

// rootFlag names the stack root that the real cache folder holds; none where servers come from elsewhere.
func rootFlag() []string {
	if root, err := stack.FindRoot(""); err == nil {
		return []string{"--root", root.Path}
	}
	return []string{"--source", "host"}
}

func stopOwnStack() error {
	if own.cmd == nil || own.cmd.Process == nil {
		return nil
	}
	err := errors.Join(own.end.Close(), own.cmd.Wait())
	left, globErr := filepath.Glob(filepath.Join(own.cache, "spillway", "*.sock"))
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("sockets are left: %v", left))
	}
	return errors.Join(err, globErr, os.RemoveAll(own.cache))
}
