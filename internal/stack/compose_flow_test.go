//go:build linux

package stack

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dockerScript stands in for docker on the PATH. It writes down what it is called with; "up" returns when the test has
// put a server on the published port. Containers there are none: what an engine does is not tested.
const dockerScript = `#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >>calls
case " $* " in
*" up "*) while [ ! -e ready ]; do sleep 0.02; done ;;
*" ps "*) echo prometheus ;;
*" logs "*) echo from standard output; echo from standard error >&2 ;;
*" events "*) cat events; exec sleep 100 ;;
esac
`

// scripted is a shell whose machine has an engine.
type scripted struct {
	*shell
	bin string
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{newShell(t), t.TempDir()}
	for name, text := range map[string]string{
		"docker": dockerScript,
		"events": `{"action":"start","service":"prometheus"}` + "\n" + `{"action":"die","service":"prometheus","attributes":{"exitCode":"137"}}` + "\n",
		"calls":  "",
	} {
		if err := os.WriteFile(filepath.Join(s.bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.path = s.bin + ":" + os.Getenv("PATH")
	go s.serve()
	return s
}

func (s *scripted) calls() string {
	text, _ := os.ReadFile(filepath.Join(s.bin, "calls")) // there from the start
	return string(text)
}

// serve is the container: it answers on the port that the environment file names.
func (s *scripted) serve() {
	port := ""
	for port == "" {
		if s.t.Context().Err() != nil {
			return
		}
		port = s.publishedPort()
		time.Sleep(10 * time.Millisecond)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/-/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/api/v1/status/buildinfo", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"version":"3.5.0"}}`)
	})
	listener, err := net.Listen("tcp4", "127.0.0.1:"+port)
	if err != nil {
		s.t.Error(err)
		return
	}
	server := &http.Server{Handler: mux}
	s.t.Cleanup(func() { server.Close() })
	go func() { _ = server.Serve(listener) }()
	if err := os.WriteFile(filepath.Join(s.bin, "ready"), nil, 0o644); err != nil {
		s.t.Error(err)
	}
}

func (s *scripted) publishedPort() string {
	_, rest, _ := strings.Cut(s.calls(), "--env-file ")
	path, _, _ := strings.Cut(rest, " ")
	environment, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_, rest, _ = strings.Cut(string(environment), "SPILLWAY_PROMETHEUS_PORT=")
	port, _, _ := strings.Cut(rest, "\n")
	return port
}

func (s *scripted) projects() []string {
	left, _ := filepath.Glob(filepath.Join(s.cache, "spillway", projectPrefix+"*"))
	return left
}

func TestAStackOfContainersIsFoundUsedAndEnded(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	if out, code := s.run("up", "--detach", "--source", "compose", "--services", "prometheus", "--ttl", "10m"); code != 0 {
		t.Fatalf("up: exit %d, %q", code, out)
	}
	out, _ := s.run("status", "--json")
	var state State
	if err := json.Unmarshal([]byte(out), &state); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	want := Status{Service: Prometheus, Running: true, Version: "3.5.0"}
	if state.Source != SourceCompose || len(state.Services) != 1 || state.Services[0] != want || state.EndsAt.IsZero() || state.Problem != "" {
		t.Errorf("state %+v, want prometheus 3.5.0 running under compose, with an end", state)
	}
	if out, _ := s.run("env"); out != "export SPILLWAY_PROMETHEUS='http://127.0.0.1:"+s.publishedPort()+"'\n" {
		t.Errorf("env prints %q", out)
	}
	if out, _ := s.run("logs", "prometheus"); out != "from standard output\nfrom standard error\n" {
		t.Errorf("logs prints %q, want both outputs", out)
	}
	remote, ok, err := attachTo(t.Context(), filepath.Join(s.cache, "spillway", "stack.sock"))
	if !ok || err != nil {
		t.Fatalf("attach: %v, %v", ok, err)
	}
	if one := nextDeath(t, remote.Deaths(t.Context())); one.Service != Prometheus || one.Err.Error() != "its container ended: exit status 137" {
		t.Errorf("told of %q, %q; want what the engine said", one.Service, one.Err)
	}
	if out, code := s.run("down"); code != 0 || !strings.HasSuffix(s.calls(), "down --volumes --timeout 20\n") {
		t.Errorf("down: exit %d, %q; calls %q", code, out, s.calls())
	}
	if left := s.projects(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestContainersEndWithTheirTimeAndAfterAKill(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	cmd, _ := s.hold(nil, "--source", "compose", "--services", "prometheus")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(s.projects()) == 0 || strings.Contains(s.calls(), "down") {
		t.Fatalf("a kill left %v, calls %q; want a project that still runs", s.projects(), s.calls())
	}
	if out, code := s.run("down"); code != 0 || !strings.HasSuffix(out, "compose projects: 1\nno stack is up\n") || len(s.projects()) != 0 {
		t.Errorf("down after the kill: exit %d, %q, left %v", code, out, s.projects())
	}
	if out, code := s.run("down"); code != 0 || out != "no stack is up\n" {
		t.Errorf("a second down: exit %d, %q", code, out)
	}
}
