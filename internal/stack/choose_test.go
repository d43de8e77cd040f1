//go:build linux

package stack

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// These tests set the cache folder of the whole process, so they cannot run side by side.

func TestChooseTakesTheStackThatIsUpAndLeavesItUp(t *testing.T) {
	s := newShell(t)
	_, state := s.hold(nil, "--services", "prometheus")
	root := needRoot(t)
	t.Setenv("XDG_CACHE_HOME", s.cache)
	chosen, err := Choose(t.Context(), Options{Services: []string{Prometheus}, Root: root.Path, Executable: executable})
	if err != nil {
		t.Fatal(err)
	}
	if !chosen.Attached || !reflect.DeepEqual(chosen.Addresses(), state.Addresses) || chosen.Source != SourceRoot {
		t.Errorf("chosen %v at %v, want the stack at %v", chosen.Source, chosen.Addresses().Redacted(), state.Addresses.Redacted())
	}
	if err := chosen.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, ok, err := Attach(t.Context()); !ok || err != nil {
		t.Errorf("after Close the stack is up: %v, %v; want true", ok, err)
	}
}

func TestChooseStartsItsOwnWhereTheOneThatIsUpLacksAService(t *testing.T) {
	s := newShell(t)
	s.hold(nil, "--services", "prometheus")
	root := needRoot(t)
	t.Setenv("XDG_CACHE_HOME", s.cache)
	chosen, err := Choose(t.Context(), Options{Services: []string{PostgreSQL}, Root: root.Path, Executable: executable})
	if err != nil {
		t.Fatal(err)
	}
	if chosen.Attached || chosen.Versions()[PostgreSQL] == "" {
		t.Errorf("attached %v, versions %v; want a PostgreSQL of its own", chosen.Attached, chosen.Versions())
	}
	if err := chosen.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestChooseSaysWhatToDoWhereNothingServes(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir()) // no docker
	_, err := Choose(t.Context(), Options{Source: SourceCompose})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "spillway stack setup") {
		t.Errorf("got %v, want %v with advice", err, ErrUnavailable)
	}
	all := Describe(t.Context(), Options{})
	if len(all) != 3 || !errors.Is(all[0].Err, ErrNoRoot) || all[2].Usable() {
		t.Errorf("described as %v, want no root and no engine", all)
	}
}

func TestASocketOfADeadSupervisorIsNoStack(t *testing.T) {
	cache := shortTempDir(t)
	t.Setenv("XDG_CACHE_HOME", cache)
	if _, ok, err := Attach(t.Context()); ok || err != nil {
		t.Errorf("with no socket: %v, %v; want no stack and no error", ok, err)
	}
	listener, err := listenPrivately(t.Context(), filepath.Join(cache, "spillway", "stack.sock"))
	if err != nil {
		t.Fatal(err)
	}
	listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	listener.Close()
	if _, ok, err := Attach(t.Context()); ok || err != nil {
		t.Errorf("with a dead socket: %v, %v; want no stack and no error", ok, err)
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(cache, strings.Repeat("long", 30)))
	if _, _, err := Attach(t.Context()); err == nil {
		t.Error("a socket path over the limit is taken")
	}
}
