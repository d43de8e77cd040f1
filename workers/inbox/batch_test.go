package inbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/postgres/postgrestest"
	"spillway/workers/inbox"
)

// long is a linger that no test waits for.
const long = time.Hour

// setupBatch returns a batch inbox on a database of its own, with a connection to spare for looking on.
func setupBatch(t *testing.T, s postgres.Settings, o inbox.BatchOptions) (*bench, *inbox.Batch) {
	t.Helper()
	db := postgrestest.NewSized(t, s, o.Lanes+4)
	batch := newBatch(t, db.Pool(), o)
	return &bench{T: t, db: db, inbox: batch}, batch
}

// together applies the claims at once, in this order of arrival, and returns what came of each. The batch must be as
// large as they are many and linger, so that they share a statement.
func (b *bench) together(claims ...inbox.Claim) []outcome {
	b.Helper()
	all := make([]<-chan outcome, len(claims))
	for i := range claims {
		arrived := b.inbox.(*inbox.Batch).Waiting()
		all[i] = b.start(b.Context(), claims[i])
		if i < len(claims)-1 { // the last one sends them all
			b.await("the call to be in the queue", func() bool { return b.inbox.(*inbox.Batch).Waiting() > arrived })
		}
	}
	out := make([]outcome, len(claims))
	for i, done := range all {
		out[i] = <-done
	}
	return out
}

// wantResults checks the results of calls that must have none but these.
func (b *bench) wantResults(got []outcome, want ...event.Result) {
	b.Helper()
	for i := range want {
		if got[i].err != nil || got[i].result != want[i] {
			b.Errorf("call %d is %v, %v; want %v", i, got[i].result, got[i].err, want[i])
		}
	}
}

// commits counts the transactions that claimed ids.
func (b *bench) commits() (n int) {
	b.Helper()
	if err := b.db.Pool().QueryRow(b.Context(), `select count(distinct xmin::text) from inbox`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func (b *bench) exec(sql string) {
	b.Helper()
	if _, err := b.db.Pool().Exec(b.Context(), sql); err != nil {
		b.Fatal(err)
	}
}

func order(seq int64, sku, count int) inbox.Claim {
	c := claim(seq)
	c.SKU, c.Count = postgres.SKU(sku), count
	return c
}

func TestAFullBatchIsOneCommit(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 5, Linger: long, Lanes: 1})
	got := b.together(order(1, 0, 1), order(2, 1, 2), order(3, 0, 3), order(4, 1, 4), order(5, 0, 5))
	b.wantResults(got, event.Applied, event.Applied, event.Applied, event.Applied, event.Applied)
	b.wantState(state{claims: 5, reservedRows: 5, available: 1985, reserved: 15})
	if got := b.commits(); got != 1 {
		t.Errorf("there were %d commits, want 1", got)
	}
}

func TestABatchThatIsNotFullGoesWhenItHasLingered(t *testing.T) {
	t.Parallel()
	const linger = 50 * time.Millisecond
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 100, Linger: linger, Lanes: 1})
	for seq := range int64(2) { // the second time with a timer that has fired before
		started := time.Now()
		b.want(claim(seq), event.Applied)
		if took := time.Since(started); took < linger {
			t.Errorf("message %d took %v, less than the linger", seq, took)
		}
	}
}

func TestAnEarlyLeaverDoesNotTakeTheTimerWithIt(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 100, Linger: 100 * time.Millisecond, Lanes: 1})
	ctx, cancel := context.WithCancel(t.Context())
	leaver := b.start(ctx, claim(1))
	b.await("the leaver to wait", func() bool { return batch.Waiting() == 1 })
	stayer := b.start(t.Context(), claim(2))
	b.await("both to wait", func() bool { return batch.Waiting() == 2 })
	cancel()
	if o := <-leaver; !errors.Is(o.err, postgres.ErrNoConnection) {
		t.Errorf("the leaver got %v, %v", o.result, o.err)
	}
	b.wantResults([]outcome{<-stayer}, event.Applied)
	b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
}

func TestWhatArrivesWhileTheLanesAreBusySharesTheNextCommit(t *testing.T) {
	t.Parallel()
	b, batch := setupBatch(t, plenty, inbox.BatchOptions{Size: 100, Lanes: 1})
	release := b.lockStock()
	first := b.start(t.Context(), claim(0))
	b.await("the first to wait for the row", func() bool { return len(b.blocked()) == 1 })
	var rest []<-chan outcome
	for seq := int64(1); seq <= 20; seq++ {
		rest = append(rest, b.start(t.Context(), claim(seq)))
	}
	b.await("the others to wait", func() bool { return batch.Waiting() == len(rest) })
	release()
	b.wantResults([]outcome{<-first}, event.Applied)
	for _, done := range rest {
		b.wantResults([]outcome{<-done}, event.Applied)
	}
	b.wantState(state{claims: 21, reservedRows: 21, available: 1958, reserved: 42})
	if got := b.commits(); got != 2 {
		t.Errorf("there were %d commits, want 2", got)
	}
}

func TestStockGoesToTheEarlierArrivalAndALaterSmallerOneMayFit(t *testing.T) {
	t.Parallel()
	forced := order(6, 0, 1)
	forced.Refuse = true
	for name, row := range map[string]struct {
		stock  int64
		claims []inbox.Claim
		want   []event.Result
		left   int64
	}{
		"the first two take all": {
			5, []inbox.Claim{order(9, 0, 3), order(8, 0, 2), order(7, 0, 1)},
			[]event.Result{event.Applied, event.Applied, event.Refused}, 0,
		},
		"one too large in front leaves room for the next": {
			5, []inbox.Claim{order(1, 0, 6), order(2, 0, 4), order(3, 0, 2), order(4, 0, 1)},
			[]event.Result{event.Refused, event.Applied, event.Refused, event.Applied}, 0,
		},
		"a forced refusal takes no stock": {
			2, []inbox.Claim{forced, order(1, 0, 2), order(2, 0, 1)},
			[]event.Result{event.Refused, event.Applied, event.Refused}, 0,
		},
		"too little for any": {
			1, []inbox.Claim{order(1, 0, 2), order(2, 0, 3)},
			[]event.Result{event.Refused, event.Refused}, 1,
		},
		"a copy of an id takes no second share": {
			3, []inbox.Claim{order(1, 0, 2), order(1, 0, 2), order(2, 0, 1)},
			[]event.Result{event.Applied, event.Duplicate, event.Applied}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := postgres.Settings{SKUs: 1, InitialStock: row.stock}
			b, _ := setupBatch(t, s, inbox.BatchOptions{Size: len(row.claims), Linger: long, Lanes: 1})
			b.wantResults(b.together(row.claims...), row.want...)
			if got := b.state(); got.available != row.left || got.reserved != row.stock-row.left {
				t.Errorf("available %d, reserved %d; want %d left of %d", got.available, got.reserved, row.left, row.stock)
			}
		})
	}
}

// TestABatchDecidesAsOneByOneWould holds the statement against a plain loop.
func TestABatchDecidesAsOneByOneWould(t *testing.T) {
	t.Parallel()
	const skus, size, rounds, stock = 3, 40, 6, 60
	random := rand.New(rand.NewPCG(1, 2))
	b, _ := setupBatch(t, postgres.Settings{SKUs: skus, InitialStock: stock}, inbox.BatchOptions{Size: size, Linger: long, Lanes: 1})
	left := map[string]int{}
	for i := range skus {
		left[postgres.SKU(i)] = stock
	}
	for round := range rounds {
		claims, want := make([]inbox.Claim, size), make([]event.Result, size)
		for i, seq := range random.Perm(size) { // the order of ids is not that of arrival
			c := order(int64(round*size+seq), random.IntN(skus+1), 1+random.IntN(9)) // the last SKU does not exist
			c.Refuse = random.IntN(10) == 0
			claims[i], want[i] = c, event.Refused
			if !c.Refuse && c.Count <= left[c.SKU] {
				left[c.SKU] -= c.Count
				want[i] = event.Applied
			}
		}
		b.wantResults(b.together(claims...), want...)
	}
	total := 0
	for _, n := range left {
		total += n
	}
	if got := b.state(); got.available != int64(total) || got.events != got.refusedRows || got.claims != size*rounds {
		t.Errorf("the tables hold %+v, want %d available, %d claims and an event per refusal", got, total, size*rounds)
	}
}

func TestDuplicatesInsideAndAcrossBatches(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 4, Linger: long, Lanes: 2})
	b.wantResults(b.together(claim(1), claim(1), claim(2), claim(1)),
		event.Applied, event.Duplicate, event.Applied, event.Duplicate)
	b.wantResults(b.together(claim(2), claim(3), claim(3), claim(1)),
		event.Duplicate, event.Applied, event.Duplicate, event.Duplicate)
	b.wantState(state{claims: 3, reservedRows: 3, available: 1994, reserved: 6})
}

func TestOnePoisonedRowDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 16, Linger: long, Lanes: 1})
	b.exec(`alter table effect_log add constraint spoilt check (seq not in (3, 11))`)
	claims := make([]inbox.Claim, 16)
	for i := range claims {
		claims[i] = claim(int64(i))
	}
	for i, o := range b.together(claims...) {
		var pg *pgconn.PgError
		switch poisoned := i == 3 || i == 11; {
		case poisoned && (!errors.As(o.err, &pg) || pg.ConstraintName != "spoilt" || postgres.Classify(o.err) != postgres.Permanent || o.result != 0):
			t.Errorf("the poisoned call %d got %v, %v; want the check's violation", i, o.result, o.err)
		case !poisoned && (o.err != nil || o.result != event.Applied):
			t.Errorf("its neighbour %d got %v, %v; want applied", i, o.result, o.err)
		}
	}
	b.wantState(state{claims: 14, reservedRows: 14, available: 1972, reserved: 28})
}

func TestARowRefusedByATriggerOfAnUnknownCodeIsIsolatedToo(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 3, Linger: long, Lanes: 1})
	b.exec(`create function spoil() returns trigger language plpgsql as $$ begin raise exception 'spoilt' using errcode = 'XX001'; end $$`)
	b.exec(`create trigger spoil before insert on effect_log for each row when (new.seq = 2) execute function spoil()`)
	got := b.together(claim(1), claim(2), claim(3))
	b.wantResults([]outcome{got[0], got[2]}, event.Applied, event.Applied)
	if postgres.Classify(got[1].err) != postgres.Unknown {
		t.Errorf("the spoilt call got %v, %v; want an error of no known class", got[1].result, got[1].err)
	}
}

func TestACopyIsJudgedByItsOwnContentWhenTheFirstIsPoisoned(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 4, Linger: long, Lanes: 1})
	b.exec(`alter table effect_log add constraint spoilt check (count <> 7)`)
	got := b.together(order(1, 0, 7), order(1, 0, 2), order(1, 0, 2), order(2, 0, 1))
	if postgres.Classify(got[0].err) != postgres.Permanent {
		t.Errorf("the first got %v, %v; want a permanent error", got[0].result, got[0].err)
	}
	b.wantResults(got[1:], event.Applied, event.Duplicate, event.Applied)
	b.wantState(state{claims: 2, reservedRows: 2, available: 1997, reserved: 3})
}

func TestAHotSKUWithManyCallersIsCountedExactly(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, postgres.Settings{SKUs: 1, InitialStock: 701}, inbox.BatchOptions{Size: 16, Lanes: 4})
	got := b.count(400, func(i int) inbox.Claim { return claim(int64(i)) })
	if got[event.Applied] != 350 || got[event.Refused] != 50 {
		t.Errorf("results are %v, want 350 applied and 50 refused", got)
	}
	b.wantState(state{claims: 400, reservedRows: 350, refusedRows: 50, events: 50, available: 1, reserved: 700})
}

// TestManyLanesNeverLockEachOtherOut also delivers every message twice, to different lanes as it comes.
func TestManyLanesNeverLockEachOtherOut(t *testing.T) {
	t.Parallel()
	const callers, each, skus, stock = 64, 24, 12, 100_000
	b, _ := setupBatch(t, postgres.Settings{SKUs: skus, InitialStock: stock}, inbox.BatchOptions{Size: 16, Lanes: 8})
	var mu sync.Mutex
	results := make(map[event.Result]int)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 7))
			for i := range each {
				seq := int64(caller%(callers/2)*each + i)
				result, err := b.inbox.Apply(b.Context(), order(seq, random.IntN(skus), 1))
				if err != nil {
					b.Errorf("message %d: %v", seq, err)
				}
				mu.Lock()
				results[result]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	const distinct = callers / 2 * each
	if results[event.Applied] != distinct || results[event.Duplicate] != distinct {
		t.Errorf("results are %v, want %d applied and as many duplicates", results, distinct)
	}
	b.wantState(state{claims: distinct, reservedRows: distinct, available: skus*stock - distinct, reserved: distinct})
}

// TestTheSameIdsInOppositeOrdersDoNotLockEachOtherOut slows the claims down, so that both batches are in the middle of
// theirs.
func TestTheSameIdsInOppositeOrdersDoNotLockEachOtherOut(t *testing.T) {
	t.Parallel()
	const size = 6
	o := inbox.BatchOptions{Size: size, Linger: long, Lanes: 1}
	one, _ := setupBatch(t, plenty, o)
	one.exec(`create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.02); return new; end $$`)
	one.exec(`create trigger slow before insert on inbox for each row execute function slow()`)
	two := &bench{T: t, db: one.db, inbox: newBatch(t, one.db.Pool(), o)}
	up, down := make([]inbox.Claim, size), make([]inbox.Claim, size)
	for i := range size {
		up[i], down[size-1-i] = claim(int64(i)), claim(int64(i))
	}
	var first []outcome
	var both sync.WaitGroup
	both.Go(func() { first = one.together(up...) })
	second := two.together(down...)
	both.Wait()
	counts := make(map[event.Result]int)
	for _, got := range append(first, second...) {
		if got.err != nil {
			t.Error(got.err)
		}
		counts[got.result]++
	}
	if counts[event.Applied] != size || counts[event.Duplicate] != size {
		t.Errorf("results are %v, want %d applied and as many duplicates", counts, size)
	}
}

func TestBothDeliveriesOfForeignMessagesKeepTheirRows(t *testing.T) {
	t.Parallel()
	b, _ := setupBatch(t, plenty, inbox.BatchOptions{Size: 2, Linger: long, Lanes: 1})
	first, second := claim(1), claim(2)
	first.Seq, second.Seq = envelope.NoSeq, envelope.NoSeq // distinct by id alone
	b.wantResults(b.together(first, second), event.Applied, event.Applied)
	b.wantState(state{claims: 2, reservedRows: 2, available: 1996, reserved: 4})
}
