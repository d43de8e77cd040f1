//go:build linux

package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// patient is a stack whose troubles are noted down; what servers make of them is tested with real ones.
type patient struct {
	held
	fails error // of a release

	mu    sync.Mutex // guards calls
	calls []string
}

func (p *patient) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, what)
}

func (p *patient) noted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *patient) Hold(_ context.Context, service string, t Trouble) (Release, error) {
	if t == "ill" {
		return nil, ErrUnknownTrouble
	}
	p.note(service + " " + string(t))
	return func(context.Context) error {
		p.note("released")
		return p.fails
	}, nil
}

// supervised serves a patient's socket until the test is over.
func supervised(t *testing.T, p *patient) *Remote {
	t.Helper()
	socket := filepath.Join(shortTempDir(t), "s.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := newSupervisor(p, SuperviseOptions{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.server.Serve(listener) })
	t.Cleanup(func() {
		s.finish(nil)
		serving.Wait()
	})
	return newRemote(socket)
}

func TestAHeldTroubleEndsWithItsRelease(t *testing.T) {
	t.Parallel()
	p := &patient{}
	release, err := supervised(t, p).Hold(t.Context(), RabbitMQ, Frozen)
	if err != nil || !slices.Equal(p.noted(), []string{"rabbitmq frozen"}) {
		t.Fatalf("%v, calls %v", err, p.noted())
	}
	if err := release(t.Context()); err != nil || !slices.Equal(p.noted(), []string{"rabbitmq frozen", "released"}) {
		t.Errorf("%v, calls %v", err, p.noted())
	}
}

func TestAReleaseThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	release, err := supervised(t, &patient{fails: ErrNotReady}).Hold(t.Context(), PostgreSQL, Stopped)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Errorf("the release returned %v", err)
	}
}

func TestATroubleThatCannotBeHadIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := supervised(t, &patient{}).Hold(t.Context(), RabbitMQ, "ill"); !errors.Is(err, ErrUnknownTrouble) {
		t.Errorf("Hold returned %v", err)
	}
}

// TestTheDeathOfTheHolderEndsTheTrouble closes the connection as the kernel does for a process that was killed.
func TestTheDeathOfTheHolderEndsTheTrouble(t *testing.T) {
	t.Parallel()
	p := &patient{}
	r := supervised(t, p)
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	request := "POST /services/rabbitmq/hold?trouble=frozen HTTP/1.1\r\nHost: stack\r\nTransfer-Encoding: chunked\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() bool { return len(p.noted()) == 1 })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() bool { return slices.Equal(p.noted(), []string{"rabbitmq frozen", "released"}) })
}

func TestABrokersTroublesComeAndGo(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{RabbitMQ}})
	alarms := func() int { return statusOf(t, s.Addresses().Management+"/api/health/checks/alarms") }
	for _, trouble := range []Trouble{MemoryAlarm, DiskAlarm} {
		release, err := s.Hold(t.Context(), RabbitMQ, trouble)
		if err != nil {
			t.Fatalf("%s: %v", trouble, err)
		}
		eventually(t, 10*time.Second, func() bool { return alarms() == http.StatusServiceUnavailable })
		if err := release(t.Context()); err != nil {
			t.Errorf("%s: %v", trouble, err)
		}
		eventually(t, 10*time.Second, func() bool { return alarms() == http.StatusOK })
	}
	if _, err := s.Hold(t.Context(), PostgreSQL, Frozen); !errors.Is(err, ErrUnknownService) {
		t.Errorf("freezing what the stack does not hold gives %v", err)
	}
	if _, err := s.Hold(t.Context(), RabbitMQ, "ill"); !errors.Is(err, ErrUnknownTrouble) {
		t.Errorf("an unknown trouble gives %v", err)
	}
}

func statusOf(t *testing.T, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
