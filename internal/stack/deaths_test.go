//go:build linux

package stack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// nextDeath waits for news; the bound is there for a broken build only.
func nextDeath(t *testing.T, heard <-chan Death) Death {
	t.Helper()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	select {
	case one, open := <-heard:
		if !open {
			t.Fatal("the channel is closed")
		}
		return one
	case <-timeout.C:
		t.Fatal("nothing was told")
	}
	return Death{}
}

// killServer is what the kernel does to a server that takes too much memory.
func killServer(t *testing.T, first int) {
	t.Helper()
	below := descendants(first)
	if len(below) == 0 {
		t.Fatalf("no server below process %d", first)
	}
	if err := syscall.Kill(below[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyAnEndThatNobodyAskedForIsADeath(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{Prometheus, PostgreSQL}})
	ctx, cancel := context.WithCancel(t.Context())
	heard := s.Deaths(ctx)
	for name, end := range map[string]func() error{
		"a stop":    func() error { return s.Stop(ctx, PostgreSQL) },
		"a kill":    func() error { return s.Signal(ctx, PostgreSQL, syscall.SIGKILL) },
		"a SIGTERM": func() error { return s.Signal(ctx, PostgreSQL, syscall.SIGTERM) },
	} {
		p := s.services[PostgreSQL].running()
		if err := end(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		<-p.ended
		if err := s.Start(ctx, PostgreSQL); err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
	}
	killServer(t, s.services[Prometheus].status().PID)
	if one := nextDeath(t, heard); one.Service != Prometheus || one.Err.Error() != "exit status 137 (killed)" {
		t.Errorf("told of %q, %q; want the death of prometheus, and of nothing before", one.Service, one.Err)
	}
	cancel()
	if one, open := <-heard; open {
		t.Errorf("after the end of the listening: %v", one)
	}
}

func TestADetachedStackTellsOfDeathsAndOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	cmd, state := s.hold(nil, "--services", "prometheus,postgres")
	remote, ok, err := attachTo(t.Context(), filepath.Join(s.cache, "spillway", "stack.sock"))
	if !ok || err != nil {
		t.Fatalf("attach: %v, %v", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := remote.Deaths(ctx)
	killServer(t, state.Services[1].PID)
	if one := nextDeath(t, heard); one.Service != Prometheus || one.Err.Error() != "exit status 137 (killed)" {
		t.Errorf("told of %q, %q; want the death of prometheus", one.Service, one.Err)
	}
	if err := cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, service := range []string{PostgreSQL, Prometheus} {
		if one := nextDeath(t, heard); one.Service != service || !errors.Is(one.Err, errSupervisorGone) {
			t.Errorf("told of %q, %q; want that of %s with its supervisor", one.Service, one.Err, service)
		}
	}
	if one, open := <-heard; open {
		t.Errorf("after the end of all: %v", one)
	}
	start(t, Options{Services: []string{Prometheus}}) // cleans what the killed one left
}

func TestAListenerThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	var d deaths
	ctx, cancel := context.WithCancel(t.Context())
	heard := d.listen(ctx)
	for range 2 * deathBuffer {
		d.tell(Death{Service: PostgreSQL, Err: errEndedCleanly})
	}
	cancel()
	count := 0
	for range heard {
		count++
	}
	if count != deathBuffer {
		t.Errorf("heard %d deaths, want %d", count, deathBuffer)
	}
}
