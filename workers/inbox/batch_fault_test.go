package inbox_test

import (
	"context"
	"errors"
	"testing"

	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/workers/inbox"
)

// underWay starts n calls that share a batch, and returns once it waits for the stock's row, which it does until released.
func (b *bench) underWay(ctx context.Context, n int) (all []<-chan outcome, release func()) {
	b.Helper()
	release = b.lockStock()
	for seq := range n {
		all = append(all, b.start(ctx, claim(int64(seq))))
	}
	b.await("the batch to wait for the row", func() bool { return len(b.blocked()) == 1 })
	return all, release
}

func TestACallerThatLeavesTheQueueIsNotSent(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 10, Lanes: 1})
	first, release := b.underWay(t.Context(), 1)
	cause := errors.New("changed its mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	leaver := b.start(ctx, claim(7))
	b.await("the leaver to wait", func() bool { return batch.Waiting() == 1 })
	cancel(cause)
	o := <-leaver
	if !errors.Is(o.err, cause) || postgres.Classify(o.err) != postgres.Transient || errors.Is(o.err, postgres.ErrCommitUnknown) {
		t.Errorf("the leaver got %v, %v; want its cause, transient, with a known outcome", o.result, o.err)
	}
	release()
	b.wantResults([]outcome{<-first[0]}, event.Applied)
	b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
}

func TestACallerThatLeavesABatchUnderWayDoesNotKnow(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 2, Linger: long, Lanes: 1})
	release := b.lockStock()
	ctx, cancel := context.WithCancel(t.Context())
	leaver := b.start(ctx, claim(1))
	b.await("the leaver to wait", func() bool { return batch.Waiting() == 1 })
	stayer := b.start(t.Context(), claim(2))
	b.await("the batch to wait for the row", func() bool { return len(b.blocked()) == 1 })
	cancel()
	if o := <-leaver; !errors.Is(o.err, postgres.ErrCommitUnknown) || !errors.Is(o.err, context.Canceled) || o.result != 0 {
		t.Errorf("the leaver got %v, %v; want ErrCommitUnknown", o.result, o.err)
	}
	release()
	b.wantResults([]outcome{<-stayer}, event.Applied)
	b.wantState(state{claims: 2, reservedRows: 2, available: 1996, reserved: 4}) // its neighbour took it along
}

func TestABatchThatEveryCallerHasLeftIsCutOff(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 3, Linger: long, Lanes: 1})
	ctx, cancel := context.WithCancel(t.Context())
	all, release := b.underWay(ctx, 3)
	cancel()
	for _, done := range all {
		if o := <-done; !errors.Is(o.err, postgres.ErrCommitUnknown) {
			t.Errorf("a caller got %v, %v; want ErrCommitUnknown", o.result, o.err)
		}
	}
	b.await("the server to give up", func() bool { return len(b.blocked()) == 0 })
	release()
	b.wantState(state{available: 2000})
}

func TestABackendKilledUnderABatchLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 8, Linger: long, Lanes: 1})
	all, release := b.underWay(t.Context(), 8)
	if _, err := b.db.Pool().Exec(t.Context(), `select pg_terminate_backend($1)`, b.blocked()[0]); err != nil {
		t.Fatal(err)
	}
	first := <-all[0]
	for i, o := range append([]outcome{first}, <-all[1], <-all[2], <-all[3], <-all[4], <-all[5], <-all[6], <-all[7]) {
		if postgres.Classify(o.err) != postgres.Transient || o.result != 0 {
			t.Errorf("call %d got %v, %v; want a transient error", i, o.result, o.err)
		}
	}
	release()
	b.wantState(state{available: 2000})
	again := make([]inbox.Claim, 8)
	for i := range again {
		again[i] = claim(int64(i))
	}
	for i, o := range b.together(again...) {
		if o.err != nil || o.result != event.Applied {
			t.Errorf("call %d is %v, %v; want applied", i, o.result, o.err)
		}
	}
	b.wantState(state{claims: 8, reservedRows: 8, available: 1984, reserved: 16})
}

func TestALostAnswerLeavesEveryCallerOfTheBatchUnknowing(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t, plenty)
	cut := startCutter(t)
	through := postgrestest.Open(t, postgres.Config{URI: cut.uri, Schema: db.Schema(), MaxConns: 1})
	b := &bench{T: t, db: db, inbox: newBatch(t, through.Pool(), inbox.BatchOptions{Size: 2, Linger: long, Lanes: 1})}
	b.wantResults(b.together(claim(1), claim(2)), event.Applied, event.Applied) // prepares the statement
	cut.after.Store(1)
	for i, o := range b.together(claim(3), claim(4)) {
		if !errors.Is(o.err, postgres.ErrCommitUnknown) || o.result != 0 {
			t.Errorf("call %d got %v, %v; want ErrCommitUnknown", i, o.result, o.err)
		}
	}
	b.wantResults(b.together(claim(3), claim(4)), event.Duplicate, event.Duplicate)
	b.wantState(state{claims: 4, reservedRows: 4, available: 1992, reserved: 8})
}

func TestATransientFailureIsEverybodysAndIsNotTakenApart(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 3, Linger: long, Lanes: 1})
	b.exec(`create sequence tries`)
	b.exec(`create function fail() returns trigger language plpgsql as
	        $$ begin perform nextval('tries'); raise exception 'not now' using errcode = '40001'; end $$`)
	b.exec(`create trigger fail before insert on inbox for each statement execute function fail()`)
	for i, o := range b.together(claim(1), claim(2), claim(3)) {
		if postgres.Classify(o.err) != postgres.Transient || errors.Is(o.err, postgres.ErrCommitUnknown) {
			t.Errorf("call %d got %v, %v; want a transient error, with a known outcome", i, o.result, o.err)
		}
	}
	var tries int
	if err := b.db.Pool().QueryRow(t.Context(), `select last_value from tries`).Scan(&tries); err != nil || tries != 1 {
		t.Errorf("there were %d tries (%v), want 1", tries, err)
	}
}

func TestCloseSendsWhatLingersAndThenRefuses(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 10, Linger: long, Lanes: 1})
	all := []<-chan outcome{b.start(t.Context(), claim(1)), b.start(t.Context(), claim(2))}
	b.await("both to wait", func() bool { return batch.Waiting() == 2 })
	for range 2 {
		if err := batch.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	b.wantResults([]outcome{<-all[0], <-all[1]}, event.Applied, event.Applied)
	_, err := batch.Apply(t.Context(), claim(3))
	if !errors.Is(err, inbox.ErrClosed) || postgres.Classify(err) != postgres.Transient {
		t.Errorf("error is %v, want ErrClosed, transient", err)
	}
	b.wantState(state{claims: 2, reservedRows: 2, available: 1996, reserved: 4})
}

func TestCloseCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 1, Lanes: 1})
	first, release := b.underWay(t.Context(), 1)
	second := b.start(t.Context(), claim(2))
	b.await("the second to wait", func() bool { return batch.Waiting() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := batch.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close returned %v, want the context's cause", err)
	}
	if o := <-first[0]; !errors.Is(o.err, postgres.ErrCommitUnknown) {
		t.Errorf("the one under way got %v, %v; want ErrCommitUnknown", o.result, o.err)
	}
	if o := <-second; !errors.Is(o.err, postgres.ErrNoConnection) || errors.Is(o.err, postgres.ErrCommitUnknown) {
		t.Errorf("the one in the queue got %v, %v; want ErrNoConnection", o.result, o.err)
	}
	b.await("the server to give up", func() bool { return len(b.blocked()) == 0 })
	release()
	b.wantState(state{available: 2000})
}

func TestAPoolWithoutAConnectionLeavesTheMessagesWithdrawable(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 10, Lanes: 1})
	var held []func()
	for range b.db.PoolStats().Max {
		conn, err := b.db.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn.Release)
	}
	ctx, cancel := context.WithCancel(t.Context())
	leaver, stayer := b.start(ctx, claim(1)), b.start(t.Context(), claim(2))
	b.await("both to wait", func() bool { return batch.Waiting() == 2 })
	cancel()
	if o := <-leaver; !errors.Is(o.err, postgres.ErrNoConnection) || errors.Is(o.err, postgres.ErrCommitUnknown) {
		t.Errorf("the leaver got %v, %v; want ErrNoConnection", o.result, o.err)
	}
	for _, release := range held {
		release()
	}
	b.wantResults([]outcome{<-stayer}, event.Applied)
	b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
}

func TestAClosedPoolIsTransientForAllThatWait(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 2, Linger: long, Lanes: 1})
	other := postgrestest.Open(t, postgres.Config{URI: postgrestest.URI(t)})
	other.Close()
	b.inbox = newBatch(t, other.Pool(), inbox.BatchOptions{Size: 2, Linger: long, Lanes: 1})
	for i, o := range b.together(claim(1), claim(2)) {
		if !errors.Is(o.err, postgres.ErrNoConnection) || postgres.Classify(o.err) != postgres.Transient {
			t.Errorf("call %d got %v, %v; want ErrNoConnection", i, o.result, o.err)
		}
	}
}
