package experiment

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"

	"spillway/internal/broker/rabbit"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/ledger"
	"spillway/internal/postgres"
	"spillway/internal/result"
	"spillway/loadgen/outbox"
	"spillway/workers/inbox"
)

// refusals takes the outgoing events of refusals from the inventory's outbox to the broker. The workers write the rows, a
// relay of the load side publishes them, and neither knows of the other: they meet at the table, and are joined here.
type refusals struct {
	db     *postgres.DB // a pool of its own, so that relays do not wait for handlers
	book   *outbox.Book
	relays *outbox.Relays
	found  ledger.Events         // the audit's
	came   *ledger.EventsAccount // nil until, and unless, all of it was read
	result *result.Events
}

// eventsConnection starts the names of the relays' connections to both servers. The inventory service has them, so they belong to
// the workers' side.
const eventsConnection = "spillway-events"

// eventsWindow is how many events of one relay are unconfirmed at most: at the knee, see load.confirm_window.
const eventsWindow = 256

// newRefusals makes the relays; nil in a run that has none.
func (r *run) newRefusals() (*refusals, error) {
	if !r.o.Profile.RelaysEvents() {
		return nil, nil //nolint:nilnil // no relays is a value here: what is done with them is skipped
	}
	e := &r.o.Profile.Inbox.Events
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	conns := outbox.RelayConnections(e.Relays, outbox.DefaultLanes)
	db, err := postgres.Open(ctx, r.databaseConfig(r.db.Schema(), conns, eventsConnection))
	if err != nil {
		return nil, environment("database: %w", err)
	}
	f := &refusals{db: db, book: outbox.NewBook()}
	var step atomic.Uint64 // of all relays together
	f.relays = outbox.NewRelays(outbox.RelayConfig{
		Name: eventsConnection, Driver: r.broker.Driver(), Pool: db.Pool(), Book: f.book, Base: r.base,
		Source:      outbox.Refusals(r.plan.Events, inbox.TypeStockRefused, r.o.RunID),
		MeasureFrom: leadTime + r.o.Profile.Load.Warmup, Window: eventsWindow, Batch: e.Batch, Lanes: outbox.DefaultLanes,
		Poll: outbox.DefaultPoll, Hold: outbox.DefaultHold, Observer: outbox.Nop{}, Links: event.Links{r.signals, r.metrics},
		Kill: func(outbox.Point) bool { return chance(r.seed^eventsKillSalt, step.Add(1)) < e.KillShare },
	}, e.Relays)
	return f, nil
}

// eventsKillSalt keeps these deaths apart from those of the orders' relays.
const eventsKillSalt = 0x65766b6c

// relayEvents starts the relays. finish is called when the workers have stopped, so that no row comes any more: it lets the
// relays publish what is left, for as long as the profile's drain allows, and ends them.
func (r *run) relayEvents(ctx context.Context) (finish func()) {
	if r.refusals == nil {
		return func() {}
	}
	hard, abort := context.WithCancel(context.WithoutCancel(ctx))
	relays := r.refusals.relays
	var relaying errgroup.Group
	relaying.Go(func() error { return relays.Run(hard) })
	return func() {
		defer abort()
		if len(r.deaths.seen()) == 0 { // what a dead server holds does not drain
			r.drainEvents(hard)
		}
		relays.Stop()
		timer := time.AfterFunc(stopTimeout, abort)
		defer timer.Stop()
		_ = relaying.Wait() // always nil
	}
}

func (r *run) drainEvents(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Profile.Drain.Timeout)
	defer cancel()
	if !r.refusals.relays.Drain(ctx) {
		r.say("drain: not every event of a refusal was published within %v", r.o.Profile.Drain.Timeout)
	}
}

// readRefusals reads the rows of the events, with what they are about. It comes before the queues are read.
func (r *run) readRefusals(ctx context.Context, truth *ledger.Truth) {
	f := r.refusals
	if f == nil {
		return
	}
	refused, err := f.db.Refused(ctx)
	f.found.Refused(refused)
	if err == nil {
		err = f.db.Refusals(ctx, f.note)
	}
	var state postgres.OutboxState
	if err == nil {
		state, err = f.db.OutboxState(ctx, postgres.OutboxInventory, skipGrace)
	}
	if err != nil {
		truth.Unaudited(fmt.Sprintf("the events of refusals: %v", err))
		return
	}
	f.result = &result.Events{Relay: relaySummary(f.book.Counts(), f.relays.Kills(), state)}
}

func (f *refusals) note(row postgres.RefusalRow) error {
	if row.Written {
		f.found.Written(row.Event, row.Sent, row.Refused)
	} else {
		f.found.RefusedWithoutRow()
	}
	return nil
}

// readEvents compares the rows with the events lying in their queue. An id that is none is one that no row has.
func (r *run) readEvents(lying []rabbit.Lying, truth *ledger.Truth) {
	f := r.refusals
	if f == nil || f.result == nil {
		return
	}
	for i := range lying {
		if lying[i].Run != r.o.RunID {
			truth.Lying(envelope.NoSeq, ledger.InWork) // foreign, wherever it lies
			continue
		}
		var id pgtype.UUID
		_ = id.Scan(lying[i].MessageID)
		f.found.Lying(id.Bytes)
	}
	came := f.found.Account()
	f.came = &came
	f.result.Refused, f.result.Rows, f.result.Unsent = came.Refused, came.Rows, came.Unsent
	f.result.Distinct, f.result.Duplicates = came.Distinct, came.Duplicates
}

// eventsSummary is what the result says of the events; nil without relays, or when they could not be audited.
func (r *run) eventsSummary() *result.Events {
	if r.refusals == nil || r.refusals.came == nil {
		return nil
	}
	return r.refusals.result
}
