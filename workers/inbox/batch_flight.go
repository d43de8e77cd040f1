package inbox

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"spillway/internal/event"
	"spillway/internal/postgres"
)

// flight is a batch under way. Its lane owns it; callers only part from it.
type flight struct {
	calls   []*call
	ctx     context.Context
	cancel  context.CancelCauseFunc
	present atomic.Int64 // callers that wait for an outcome
}

func newFlight(ctx context.Context, calls []*call) *flight {
	f := &flight{calls: calls}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	f.present.Store(int64(len(calls)))
	return f
}

// part counts a caller out. When the last one has gone, what is still under way is of no use to anybody.
func (f *flight) part() {
	if f.present.Add(-1) == 0 {
		f.cancel(errAbandoned)
	}
}

// answer gives a call its outcome, unless its caller has gone.
func (f *flight) answer(one *call, o outcome) {
	if one.parted.CompareAndSwap(false, true) {
		one.done <- o
		f.part()
	}
}

func (f *flight) answerAll(calls []*call, o outcome) {
	for _, one := range calls {
		f.answer(one, o)
	}
}

// run settles every call. Copies of one id never share a statement: they wait for the first of them, and are duplicates
// once that is committed.
func (f *flight) run(conn *pgx.Conn) {
	for calls := f.calls; len(calls) > 0; {
		first, copies := distinct(calls)
		settled := make(map[[16]byte]outcome, len(copies))
		f.settle(conn, first, func(one *call, o outcome) {
			if len(copies) > 0 {
				settled[one.key.message.Bytes] = o
			}
			f.answer(one, o)
		})
		calls = f.settleCopies(copies, settled)
	}
}

// distinct splits calls into the first of each id and the rest, both in order of arrival.
func distinct(calls []*call) (first, copies []*call) {
	seen := make(map[[16]byte]struct{}, len(calls))
	first = make([]*call, 0, len(calls))
	for _, one := range calls {
		id := one.key.message.Bytes
		if _, again := seen[id]; again {
			copies = append(copies, one)
			continue
		}
		seen[id] = struct{}{}
		first = append(first, one)
	}
	return first, copies
}

// settleCopies answers the copies by what came of the first, and returns those that must be tried themselves: a copy need
// not have the content for which the first was refused.
func (f *flight) settleCopies(copies []*call, settled map[[16]byte]outcome) (again []*call) {
	for _, one := range copies {
		switch o := settled[one.key.message.Bytes]; {
		case o.err == nil:
			f.answer(one, outcome{result: event.Duplicate})
		case ofContent(o.err):
			again = append(again, one)
		default:
			f.answer(one, o)
		}
	}
	return again
}

// settle applies the calls in one commit. When the content of one is at fault nothing was committed, and halving finds it
// in about 2 x log2(n) further statements; the other halves are committed on the way. The earlier half goes first, so
// that stock still goes to the earlier arrival.
func (f *flight) settle(conn *pgx.Conn, calls []*call, answer func(*call, outcome)) {
	results, err := f.apply(conn, calls)
	if err != nil && len(calls) > 1 && ofContent(err) {
		half := len(calls) / 2
		f.settle(conn, calls[:half], answer)
		f.settle(conn, calls[half:], answer)
		return
	}
	for i, one := range calls {
		o := outcome{err: err}
		if err == nil {
			o.result = results[i]
		}
		answer(one, o)
	}
}

// ofContent reports an error that another message need not meet. Unknown is among them: a trigger's own code, say, speaks
// of one row, and a neighbour must not park for it.
func ofContent(err error) bool {
	class := postgres.Classify(err)
	return class == postgres.Permanent || class == postgres.Unknown
}

// apply sends one statement, which is a transaction of its own, and returns a result per call.
func (f *flight) apply(conn *pgx.Conn, calls []*call) ([]event.Result, error) {
	c := columnsOf(calls)
	var applied, refused []int64
	err := conn.QueryRow(f.ctx, sqlApplyBatch, c.ids, c.seqs, c.instances, c.skus, c.counts, c.refuse, c.refusals,
		c.orders, c.correlations, TypeStockRefused).Scan(&applied, &refused)
	if err != nil {
		return nil, postgres.CommitError(err)
	}
	results := make([]event.Result, len(calls))
	for i := range results {
		results[i] = event.Duplicate
	}
	for _, place := range applied {
		results[place-1] = event.Applied
	}
	for _, place := range refused {
		results[place-1] = event.Refused
	}
	return results, nil
}
