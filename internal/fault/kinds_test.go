package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/fault"
	"spillway/internal/stack"
)

// control is a stack whose services are held in trouble on paper; the real ones are tested with the stack.
type control struct {
	stack.Control
	calls      []string
	releaseErr error
}

func (c *control) Hold(_ context.Context, service string, trouble stack.Trouble) (stack.Release, error) {
	c.calls = append(c.calls, fmt.Sprintf("%s %s", service, trouble))
	return func(context.Context) error {
		c.calls = append(c.calls, "released")
		return c.releaseErr
	}, nil
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
		if wanted := []string{"postgres stopped", "released"}; !slices.Equal(c.calls, wanted) {
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
		p.Server.Control, p.Server.Ping = &control{releaseErr: errInject}, func(context.Context) error { return nil }
		if err := p.Inject(t.Context()); err != nil {
			t.Fatal(err)
		}
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

func TestEachFaultOfAServerHasItsTrouble(t *testing.T) {
	t.Parallel()
	c := &control{}
	s := fault.Server{Service: "x", Control: c, Ping: func(context.Context) error { return nil }}
	for kind, row := range map[string]struct {
		fault *fault.ServerFault
		want  string
	}{
		"broker.restart":      {fault.Stop(fault.KindBrokerRestart, s), "x stopped"},
		"broker.freeze":       {fault.Freeze(fault.KindBrokerFreeze, s), "x frozen"},
		"broker.kill":         {fault.Kill(s, time.Time{}), "x killed"},
		"broker.memory-alarm": {fault.MemoryAlarm(s), "x memory-alarm"},
		"broker.disk-alarm":   {fault.DiskAlarm(s), "x disk-alarm"},
	} {
		c.calls = nil
		if err := errors.Join(row.fault.Available(), row.fault.Inject(t.Context()), row.fault.Heal(t.Context())); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if row.fault.Kind() != kind || !slices.Equal(c.calls, []string{row.want, "released"}) {
			t.Errorf("%s: kind %q, calls %v, want %v and its release", kind, row.fault.Kind(), c.calls, row.want)
		}
	}
}

// TestABrokerIsNotKilledBeforeItsQueuesHaveSettled keeps a defect of the broker's out of runs that are about something else.
func TestABrokerIsNotKilledBeforeItsQueuesHaveSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		declared := time.Now()
		f := fault.Kill(fault.Server{Service: "x", Control: &control{}, Ping: func(context.Context) error { return nil }}, declared)
		time.Sleep(time.Second)
		if err := f.Inject(t.Context()); err != nil || time.Since(declared) != fault.DeclareSettles {
			t.Errorf("killed after %v, %v; want after %v", time.Since(declared), err, fault.DeclareSettles)
		}
	})
}

func TestAServerThatIsNotWellIsNotBroken(t *testing.T) {
	t.Parallel()
	c := &control{}
	f := fault.Freeze(fault.KindBrokerFreeze, fault.Server{Service: "x", Control: c, Ping: func(context.Context) error { return errHeal }})
	if err := f.Inject(t.Context()); !errors.Is(err, errHeal) || len(c.calls) != 0 {
		t.Errorf("Inject returned %v after %v", err, c.calls)
	}
}

func TestRoundsAreSpreadOverTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		five := func() []fault.Mark { return []fault.Mark{{Name: "reconnects", Value: 5}} }
		c := &fault.Repeated{Times: 4, For: 8 * time.Second, Counts: five, Do: func(context.Context) (bool, error) {
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
		if got := c.Marks(); !slices.Equal(got, []fault.Mark{{Name: "reconnects", Value: 5}, {Name: "rounds", Value: 4, Told: true}}) {
			t.Errorf("marks %v", got)
		}
	})
}

func TestFewerRoundsThanAskedForAreNoSuchFault(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		cut  bool
		want bool
	}{
		"the window is over":  {false, true},
		"the run was stopped": {true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			asked := 0
			c := &fault.Repeated{Times: 4, For: 8 * time.Second, Do: func(context.Context) (bool, error) {
				asked++
				return asked <= 2, nil // then there is nothing any more
			}}
			if err := c.Inject(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second) // two of the four
			if row.cut {
				stop()
			}
			if err := c.Heal(context.WithoutCancel(ctx)); (err != nil) != row.want {
				t.Errorf("%s: Heal returned %v", name, err)
			}
		})
	}
}

// TestALateRoundStillCounts holds what a busy machine needs: the last round takes longer than what is left of the window.
func TestALateRoundStillCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &fault.Repeated{Times: 2, For: 4 * time.Second, Counts: func() []fault.Mark { return nil }, Do: func(context.Context) (bool, error) {
			time.Sleep(3 * time.Second)
			return true, nil
		}}
		if err := c.Inject(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if err := c.Heal(t.Context()); err != nil || c.Marks()[0].Value != 2 {
			t.Errorf("Heal returned %v after %v", err, c.Marks())
		}
	})
}

func TestWhatCannotBeRepeatedSaysWhy(t *testing.T) {
	t.Parallel()
	if err := (&fault.Repeated{Unavailable: fault.NoWayToClose}).Available(); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "management API") {
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
