package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/fault"
	"spillway/internal/stack"
)

// control is a stack whose PostgreSQL can be stopped; the real ones are tested with the stack.
type control struct {
	stack.Control
	calls    []string
	startErr error
}

func (c *control) Stop(_ context.Context, service string) error {
	c.calls = append(c.calls, "stop "+service)
	return nil
}

func (c *control) Start(_ context.Context, service string) error {
	c.calls = append(c.calls, "start "+service)
	return c.startErr
}

func TestStoppingPostgresHealsWhenALoginSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, began := &control{}, time.Now()
		p := fault.Stop(fault.KindPostgresStop, fault.Server{
			Service: stack.PostgreSQL, Control: c, Marks: func() []fault.Mark { return []fault.Mark{{Name: "transient_failures", Value: 7}} },
			Ping: func(context.Context) error {
				if len(c.calls) > 0 && time.Since(began) < time.Second { // well until it is stopped
					return errHeal
				}
				return nil
			},
		})
		if err := p.Available(); err != nil {
			t.Fatal(err)
		}
		if err := p.Inject(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Heal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("healed after %v, want when the login succeeded, 1s", took)
		}
		if wanted := []string{"stop " + stack.PostgreSQL, "start " + stack.PostgreSQL}; !slices.Equal(c.calls, wanted) {
			t.Errorf("calls %v, want %v", c.calls, wanted)
		}
		if got := p.Marks(); !slices.Equal(got, []fault.Mark{{Name: "transient_failures", Value: 7}}) {
			t.Errorf("marks %v", got)
		}
		if got := p.Kind(); got != "postgres.stop" {
			t.Errorf("kind %q", got)
		}
	})
}

func TestPostgresThatNeverAnswersIsNotHealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := fault.Stop(fault.KindPostgresStop, fault.Server{
			Service: stack.PostgreSQL, Control: &control{}, Ping: func(context.Context) error { return errHeal },
		})
		if err := p.Heal(ctx); !errors.Is(err, errHeal) {
			t.Errorf("Heal returned %v, want why the login failed", err)
		}
		p.Server.Control = &control{startErr: errInject}
		if err := p.Heal(t.Context()); !errors.Is(err, errInject) {
			t.Errorf("Heal returned %v, want why it did not start", err)
		}
	})
}

func TestADatabaseGivenByAddressIsNotStopped(t *testing.T) {
	t.Parallel()
	if err := fault.Stop(fault.KindPostgresStop, fault.Server{Service: stack.PostgreSQL}).Available(); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("Available returned %v", err)
	}
}

func (c *control) Signal(_ context.Context, service string, signal os.Signal) error {
	c.calls = append(c.calls, fmt.Sprintf("%v to %s", signal, service))
	return nil
}

func (c *control) Admin(_ context.Context, service string, args ...string) error {
	c.calls = append(c.calls, service+": "+strings.Join(args, " "))
	return nil
}

func TestEachFaultOfAServerHasItsOrders(t *testing.T) {
	t.Parallel()
	c := &control{}
	s := fault.Server{Service: "x", Control: c, Ping: func(context.Context) error { return nil }}
	for kind, row := range map[string]struct {
		fault *fault.ServerFault
		want  []string
	}{
		"broker.restart":      {fault.Stop(fault.KindBrokerRestart, s), []string{"stop x", "start x"}},
		"broker.freeze":       {fault.Freeze(fault.KindBrokerFreeze, s), []string{"stopped (signal) to x", "continued to x"}},
		"broker.memory-alarm": {fault.MemoryAlarm(s), []string{"x: set_vm_memory_high_watermark 0", "x: set_vm_memory_high_watermark 0.6"}},
		"broker.disk-alarm":   {fault.DiskAlarm(s), []string{"x: set_disk_free_limit 1000000GB", "x: set_disk_free_limit 50MB"}},
	} {
		c.calls = nil
		if err := errors.Join(row.fault.Available(), row.fault.Inject(t.Context()), row.fault.Heal(t.Context())); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if row.fault.Kind() != kind || !slices.Equal(c.calls, row.want) {
			t.Errorf("%s: kind %q, orders %v, want %v", kind, row.fault.Kind(), c.calls, row.want)
		}
	}
}

func TestAServerThatIsNotWellIsNotBroken(t *testing.T) {
	t.Parallel()
	c := &control{}
	f := fault.Freeze(fault.KindBrokerFreeze, fault.Server{Service: "x", Control: c, Ping: func(context.Context) error { return errHeal }})
	if err := f.Inject(t.Context()); !errors.Is(err, errHeal) || len(c.calls) != 0 {
		t.Errorf("Inject returned %v after %v", err, c.calls)
	}
}

func TestConnectionsAreClosedInRoundsOverTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		c := &fault.CloseConnections{Times: 4, For: 8 * time.Second, Reconnects: func() int64 { return 5 }, Close: func(context.Context) (bool, error) {
			at = append(at, time.Since(began))
			return len(at) > 1, nil // nothing is known yet at first
		}}
		if err := errors.Join(c.Available(), c.Inject(t.Context())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if err := c.Heal(t.Context()); err != nil {
			t.Fatal(err)
		}
		const tick = 50 * time.Millisecond
		if want := []time.Duration{0, tick, 2 * time.Second, 4 * time.Second, 6 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("closed at %v, want %v", at, want)
		}
		if got := c.Marks(); !slices.Equal(got, []fault.Mark{{Name: "reconnects", Value: 5}, {Name: "rounds", Value: 4}}) {
			t.Errorf("marks %v", got)
		}
	})
}

func TestConnectionsAreNotClosedWithoutTheManagementAPI(t *testing.T) {
	t.Parallel()
	if err := new(fault.CloseConnections).Available(); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("Available returned %v", err)
	}
}

func TestFailingWorkersAreOpenedAndClosed(t *testing.T) {
	t.Parallel()
	open := false
	w := &fault.WorkersFail{Open: func() { open = true }, Close: func() { open = false }, Simulated: func() int64 { return 3 }}
	if err := errors.Join(w.Available(), w.Inject(t.Context())); err != nil || !open {
		t.Errorf("open %v, %v after Inject", open, err)
	}
	if err := w.Heal(t.Context()); err != nil || open {
		t.Errorf("open %v, %v after Heal", open, err)
	}
	if got := w.Marks(); w.Kind() != "workers.fail" || !slices.Equal(got, []fault.Mark{{Name: "simulated_failures", Value: 3}}) {
		t.Errorf("kind %q, marks %v", w.Kind(), got)
	}
}
