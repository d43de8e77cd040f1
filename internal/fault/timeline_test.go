package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/fault"
	"spillway/internal/timebase"
)

const sec = time.Second

var (
	errInject = errors.New("it would not break")
	errHeal   = errors.New("it would not mend")
)

// scripted is a fault that takes its time and remembers when it was called.
type scripted struct {
	name               string
	inject, heal       error
	injectFor, healFor time.Duration
	unavailable        bool
	marks              func() []fault.Mark

	base  *timebase.Base
	mu    sync.Mutex
	calls []string
}

func (s *scripted) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf("%s@%v", what, s.base.Now()))
}

func (s *scripted) Kind() string { return s.name }

func (s *scripted) Available() error {
	if s.unavailable {
		return fmt.Errorf("%w: by the script", fault.ErrUnavailable)
	}
	return nil
}

func (s *scripted) Inject(ctx context.Context) error {
	s.note("inject")
	return s.take(ctx, s.injectFor, s.inject)
}

func (s *scripted) Heal(ctx context.Context) error {
	s.note("heal")
	return s.take(ctx, s.healFor, s.heal)
}

func (s *scripted) take(ctx context.Context, d time.Duration, err error) error {
	select {
	case <-time.After(d):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *scripted) Marks() []fault.Mark {
	if s.marks == nil {
		return nil
	}
	return s.marks()
}

// stage is a timeline and what it announced.
type stage struct {
	base     *timebase.Base
	timeline *fault.Timeline

	mu      sync.Mutex
	changes []string
}

func newStage(entries ...fault.Entry) *stage {
	s := &stage{base: timebase.New()}
	for _, e := range entries {
		e.Fault.(*scripted).base = s.base
	}
	s.timeline = fault.NewTimeline(s.base, entries, func(kind string, active bool, at time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changes = append(s.changes, fmt.Sprintf("%s %v@%v", kind, active, at))
	})
	return s
}

func want(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestAFaultIsInjectedAndHealedAtItsTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &scripted{name: "f", injectFor: sec, healFor: 2 * sec}
		s := newStage(fault.Entry{Fault: f, From: 5 * sec, For: 10 * sec})
		s.timeline.Run(t.Context())
		want(t, "calls", f.calls, []string{"inject@5s", "heal@16s"})
		want(t, "changes", s.changes, []string{"f true@5s", "f false@18s"})
		got := s.timeline.Windows()
		if len(got) != 1 || got[0].Kind != "f" || got[0].Start != 5*sec || got[0].End != 18*sec || got[0].Err != nil {
			t.Errorf("windows %+v, want 5s to 18s, where it was shown to be healthy", got)
		}
	})
}

func TestFaultsOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long, short := &scripted{name: "long"}, &scripted{name: "short"}
		s := newStage(fault.Entry{Fault: long, From: sec, For: 10 * sec}, fault.Entry{Fault: short, From: 3 * sec, For: sec})
		s.timeline.Run(t.Context())
		want(t, "changes", s.changes, []string{"long true@1s", "short true@3s", "short false@4s", "long false@11s"})
		if got := s.timeline.Windows(); len(got) != 2 || got[0].Kind != "short" || got[1].Kind != "long" {
			t.Errorf("windows %+v, want them in the order of their end", got)
		}
	})
}

func TestAFaultIsHealedWhenTheRunIsStoppedInItsMiddle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &scripted{name: "f", healFor: sec}
		s := newStage(fault.Entry{Fault: f, From: 5 * sec, For: 10 * sec})
		ctx, stop := context.WithTimeout(t.Context(), 7*sec)
		defer stop()
		s.timeline.Run(ctx)
		want(t, "calls", f.calls, []string{"inject@5s", "heal@7s"})
		if got := s.timeline.Windows(); len(got) != 1 || got[0].End != 8*sec || got[0].Err != nil || !got[0].Cut {
			t.Errorf("windows %+v, want one, healed at 8s in spite of the stop", got)
		}
	})
}

func TestAFaultThatHasNotBegunIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &scripted{name: "f"}
		s := newStage(fault.Entry{Fault: f, From: 5 * sec, For: sec})
		ctx, stop := context.WithTimeout(t.Context(), 5*sec-1)
		defer stop()
		s.timeline.Run(ctx)
		if len(f.calls)+len(s.changes)+len(s.timeline.Windows()) != 0 {
			t.Errorf("calls %v, changes %v, windows %v; want none", f.calls, s.changes, s.timeline.Windows())
		}
	})
}

// TestAStopThatComesFirstLeavesAllOut holds also for a fault whose time is over already.
func TestAStopThatComesFirstLeavesAllOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &scripted{name: "f"}
		s := newStage(fault.Entry{Fault: f, From: 0, For: sec})
		ctx, stop := context.WithCancel(t.Context())
		stop()
		for range 100 {
			s.timeline.Run(ctx)
		}
		if len(f.calls) != 0 {
			t.Errorf("calls %v after the stop", f.calls)
		}
	})
}

func TestWhatGoesWrongIsInTheWindow(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault *scripted
		is    []error
		not   []error
		end   time.Duration
	}{
		"it could not be injected": {&scripted{inject: errInject}, []error{errInject}, []error{fault.ErrNotHealed}, sec},
		"it could not be healed":   {&scripted{heal: errHeal}, []error{errHeal, fault.ErrNotHealed}, nil, 11 * sec},
		"neither":                  {&scripted{inject: errInject, heal: errHeal}, []error{errInject, errHeal, fault.ErrNotHealed}, nil, sec},
		"healing hangs":            {&scripted{healFor: time.Hour}, []error{fault.ErrNotHealed, context.DeadlineExceeded}, nil, 71 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				row.fault.name = "f"
				s := newStage(fault.Entry{Fault: row.fault, From: sec, For: 10 * sec})
				s.timeline.Run(t.Context())
				got := s.timeline.Windows()
				if len(got) != 1 || got[0].End != row.end {
					t.Fatalf("windows %+v, want one that ends at %v", got, row.end)
				}
				for _, e := range row.is {
					if !errors.Is(got[0].Err, e) {
						t.Errorf("%v is not %v", got[0].Err, e)
					}
				}
				for _, e := range row.not {
					if errors.Is(got[0].Err, e) {
						t.Errorf("%v is %v", got[0].Err, e)
					}
				}
				if len(row.fault.calls) != 2 {
					t.Errorf("calls %v, want a heal whatever happened", row.fault.calls)
				}
				if len(s.changes) != 2 {
					t.Errorf("changes %v, want a begin and an end", s.changes)
				}
			})
		})
	}
}

func TestTheEvidenceIsWhatMovedInTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var base *timebase.Base
		f := &scripted{name: "f", healFor: sec, marks: func() []fault.Mark {
			return []fault.Mark{{Name: "seconds", Value: base.Now().Seconds()}, {Name: "still", Value: 42}}
		}}
		s := newStage(fault.Entry{Fault: f, From: 5 * sec, For: 10 * sec})
		base = s.base
		s.timeline.Run(t.Context())
		got := s.timeline.Windows()[0]
		if wanted := []fault.Mark{{Name: "seconds", Value: 11}, {Name: "still", Value: 0}}; !slices.Equal(got.Evidence, wanted) {
			t.Errorf("evidence %v, want %v: from before it was injected until it was healed", got.Evidence, wanted)
		}
		if !got.Felt() {
			t.Error("a fault with a mark that moved was not felt")
		}
	})
}

func TestFelt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		evidence []fault.Mark
		want     bool
	}{
		"no marks":                {nil, false},
		"marks that did not move": {[]fault.Mark{{Name: "a"}, {Name: "b"}}, false},
		"one that moved":          {[]fault.Mark{{Name: "a"}, {Name: "b", Value: 1}}, true},
		"what was done":           {[]fault.Mark{{Name: "a", Value: 1, Told: true}}, false},
		"one that fell":           {[]fault.Mark{{Name: "a", Value: -1}}, false},
	} {
		if got := (fault.Window{Evidence: row.evidence}).Felt(); got != row.want {
			t.Errorf("%s: felt is %v", name, got)
		}
	}
}

func TestWhatIsNotAvailableIsFoundBeforehand(t *testing.T) {
	t.Parallel()
	s := newStage(fault.Entry{Fault: &scripted{name: "a"}}, fault.Entry{Fault: &scripted{name: "b", unavailable: true}})
	if err := s.timeline.Available(); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("Available returned %v", err)
	}
	if err := newStage(fault.Entry{Fault: &scripted{name: "a"}}).timeline.Available(); err != nil {
		t.Errorf("Available returned %v", err)
	}
}
