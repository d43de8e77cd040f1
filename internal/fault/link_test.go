package fault_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"spillway/internal/fault"
)

// echo serves lines back until the test is over, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				lines := bufio.NewReader(conn)
				for {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						return
					}
					if _, err := conn.Write(line); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop
		serving.Wait()
	})
	return listener.Addr().String()
}

// caller is a connection through a link.
type caller struct {
	net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, l *fault.Link, address string) *caller {
	t.Helper()
	conn, err := l.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the link may have closed it
	return &caller{conn, bufio.NewReader(conn)}
}

// ask sends a line of n bytes and returns how long the answer took.
func (c *caller) ask(n int) (time.Duration, error) {
	began := time.Now()
	line := append(make([]byte, n-1), '\n')
	if _, err := c.Write(line); err != nil {
		return 0, err
	}
	_, err := c.lines.ReadBytes('\n')
	return time.Since(began), err
}

func newLink(t *testing.T) (l *fault.Link, address string) {
	t.Helper()
	address = echo(t) // ends after the link
	l = fault.NewLink()
	t.Cleanup(l.Close)
	return l, address
}

func hold(t *testing.T, l *fault.Link, w fault.Worse) (release func()) {
	t.Helper()
	let, err := l.Hold(t.Context(), "test", w)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := let(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestALinkIsSlowWhileItIsHeld(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		worse fault.Worse
		bytes int
		least time.Duration
	}{
		"by a delay":                {fault.Worse{Delay: 100 * time.Millisecond}, 10, 100 * time.Millisecond},
		"by a delay with jitter":    {fault.Worse{Delay: 200 * time.Millisecond, Jitter: 100 * time.Millisecond}, 10, 99 * time.Millisecond},
		"by a bound of its traffic": {fault.Worse{Bandwidth: 100 << 10}, 20 << 10, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, address := newLink(t)
			before := call(t, l, address)
			if took, err := before.ask(row.bytes); err != nil || took >= row.least {
				t.Errorf("%v, %v before it is held", took, err)
			}
			release := hold(t, l, row.worse)
			for what, c := range map[string]*caller{"a connection from before": before, "a new connection": call(t, l, address)} {
				if took, err := c.ask(row.bytes); err != nil || took < row.least {
					t.Errorf("%s: %v, %v; want at least %v", what, took, err, row.least)
				}
			}
			release()
			if took, err := before.ask(row.bytes); err != nil || took >= row.least {
				t.Errorf("%v, %v after the release", took, err)
			}
		})
	}
}

func TestALinkResetsConnectionsWhileItIsHeld(t *testing.T) {
	t.Parallel()
	l, address := newLink(t)
	before := call(t, l, address)
	if _, err := before.ask(10); err != nil {
		t.Fatal(err)
	}
	release := hold(t, l, fault.Worse{Reset: true})
	for what, c := range map[string]*caller{"a connection from before": before, "a new connection": call(t, l, address)} {
		if _, err := c.ask(10); err == nil {
			t.Errorf("%s was answered", what)
		}
	}
	release()
	if _, err := call(t, l, address).ask(10); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestTroubleHoldsForAnAddressThatIsFirstDialledInIt(t *testing.T) {
	t.Parallel()
	l, address := newLink(t)
	defer hold(t, l, fault.Worse{Delay: 100 * time.Millisecond})()
	if took, err := call(t, l, address).ask(10); err != nil || took < 100*time.Millisecond {
		t.Errorf("%v, %v; want at least 100ms", took, err)
	}
}

// holding is a Held fault that notes what is done with it.
func holding(calls *[]string, well func() error, holdErr error) *fault.Held {
	return &fault.Held{
		Name: "h", Counts: func() []fault.Mark { return []fault.Mark{{Name: "m", Value: 1}} },
		Ping: func(context.Context) error { return well() },
		Hold: func(context.Context) (func(context.Context) error, error) {
			*calls = append(*calls, "hold")
			return func(context.Context) error {
				*calls = append(*calls, "release")
				return nil
			}, holdErr
		},
	}
}

func TestAHeldFaultIsReleasedOnce(t *testing.T) {
	t.Parallel()
	var calls []string
	h := holding(&calls, func() error { return nil }, nil)
	if err := errors.Join(h.Available(), h.Inject(t.Context()), h.Heal(t.Context()), h.Heal(t.Context())); err != nil {
		t.Fatal(err)
	}
	want(t, "calls", calls, []string{"hold", "release"})
	if h.Kind() != "h" || h.Marks()[0].Name != "m" {
		t.Errorf("kind %q, marks %v", h.Kind(), h.Marks())
	}
}

func TestNothingIsHeldOfWhatIsNotWell(t *testing.T) {
	t.Parallel()
	var calls []string
	if err := holding(&calls, func() error { return errHeal }, nil).Inject(t.Context()); !errors.Is(err, errHeal) || len(calls) != 0 {
		t.Errorf("%v after %v", err, calls)
	}
}

func TestAHeldFaultThatCannotBeHadSaysWhy(t *testing.T) {
	t.Parallel()
	if err := (&fault.Held{Unavailable: "the moon is full"}).Available(); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("Available returned %v", err)
	}
}
