package fault_test

import (
	"context"
	"errors"
	"slices"
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
		p := &fault.PostgresStop{Control: c, Failures: func() int64 { return 7 }, Ping: func(context.Context) error {
			if time.Since(began) < time.Second {
				return errHeal
			}
			return nil
		}}
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
		p := &fault.PostgresStop{Control: &control{}, Ping: func(context.Context) error { return errHeal }}
		if err := p.Heal(ctx); !errors.Is(err, errHeal) {
			t.Errorf("Heal returned %v, want why the login failed", err)
		}
		p.Control = &control{startErr: errInject}
		if err := p.Heal(t.Context()); !errors.Is(err, errInject) {
			t.Errorf("Heal returned %v, want why it did not start", err)
		}
	})
}

func TestADatabaseGivenByAddressIsNotStopped(t *testing.T) {
	t.Parallel()
	if err := (&fault.PostgresStop{}).Available(); !errors.Is(err, fault.ErrUnavailable) {
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
