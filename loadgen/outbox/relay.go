package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
)

// ErrKilled is returned by Relay.Run after RelayConfig.Kill had it die.
var ErrKilled = errors.New("the relay was killed")

// Point is a moment between two steps of a relay, at which it can be made to die.
type Point uint8

const (
	_ Point = iota
	// AfterClaim: rows are claimed, none is published.
	AfterClaim
	// AfterPublish: all are written to the broker, answers are under way.
	AfterPublish
	// AfterConfirm: every answer is in, nothing is marked. The broker has the messages, the table does not know.
	AfterConfirm
	// AfterMark: the marks are committed.
	AfterMark
)

// RelayConfig is what a Relay needs.
type RelayConfig struct {
	Name   string // of its connection to the broker
	Driver broker.Driver
	Pool   *pgxpool.Pool // each lane takes one connection while it has a batch
	Source Source
	Book   *Book // shared by the relays of one table
	Base   *timebase.Base
	// MeasureFrom is the offset at which warm-up ends: what was due before it is warm-up.
	MeasureFrom time.Duration
	Window      int           // unsettled publishes of all lanes together, 1 to 1000
	Batch       int           // most rows of one claim, at least 1
	Lanes       int           // claims at once: while one waits for its confirms and marks, another publishes
	Poll        time.Duration // how long an idle lane waits before it looks again, woken or not
	Hold        time.Duration // longest life of a claim; beyond it the connection to the broker is given up
	Wake        <-chan struct{}
	Load        event.LoadObserver // hears Sent and Settled of the run's own messages
	Observer    RelayObserver
	Links       event.LinkObserver
	// Kill, when not nil, is asked at every Point; true makes the relay die there as a crashed process does: both kinds of
	// connections are cut, nothing is tidied up. It must be safe for concurrent use.
	Kill func(Point) bool
}

// Defaults of a RelayConfig that callers may use.
const (
	// DefaultBatch is two of the usual windows: large enough that the cost of a claim is spread, small enough that it is
	// over in tens of milliseconds.
	DefaultBatch = 512
	DefaultLanes = 2
	DefaultPoll  = 100 * time.Millisecond
	DefaultHold  = 30 * time.Second
)

// Relay publishes what its source's table holds unsent. Run it once; several relays may run on one table, in one process
// or in many.
type Relay struct {
	cfg   RelayConfig
	floor floor
	slots []ref    // by token
	free  chan int // indices of free slots
	lanes []*lane

	stopped context.Context // ends with Stop
	stop    context.CancelFunc
	killed  atomic.Bool
	busy    chan struct{} // one token: a lane took a full batch, so there may be work for another
}

// ref says which row of which lane a publish is for.
type ref struct {
	lane *lane
	row  int
}

// NewRelay returns a relay; Run starts it.
func NewRelay(cfg RelayConfig) *Relay {
	stopped, stop := context.WithCancel(context.Background())
	return newRelay(stopped, stop, cfg)
}

// newRelay returns a relay that is asked to end by stop, and sees it by stopped.
func newRelay(stopped context.Context, stop context.CancelFunc, cfg RelayConfig) *Relay {
	r := &Relay{cfg: cfg, slots: make([]ref, cfg.Window), free: make(chan int, cfg.Window), busy: make(chan struct{}, 1)}
	r.stopped, r.stop = stopped, stop
	for i := range cfg.Window {
		r.free <- i
	}
	for range cfg.Lanes {
		r.lanes = append(r.lanes, newLane(r))
	}
	return r
}

// Stop lets every lane finish the batch in its hands, and Run return. It may be called at any time, more than once.
func (r *Relay) Stop() { r.stop() }

// Run relays until Stop is called or ctx, the hard stop, ends; then what is unanswered is Unknown, and what was confirmed
// is still marked. It returns nil, or ErrKilled. A broker or database that is away is waited for.
func (r *Relay) Run(ctx context.Context) error {
	for opened := false; ; opened = true {
		epoch := r.open(ctx)
		if epoch == nil {
			return nil
		}
		if opened {
			r.cfg.Links.Reconnected("relay", r.cfg.Base.Now())
		}
		r.serve(ctx, epoch)
		switch {
		case r.killed.Load():
			return ErrKilled
		case r.over(ctx):
			return nil
		}
	}
}

// over reports whether the relay was asked to end, in either way.
func (r *Relay) over(ctx context.Context) bool { return r.stopped.Err() != nil || ctx.Err() != nil }

// open tries until an epoch is open; nil when the relay is to end.
func (r *Relay) open(ctx context.Context) broker.Publisher {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.stopped, cancel)()
	for tries := 0; ; tries++ {
		epoch, err := r.cfg.Driver.OpenPublisher(ctx, r.cfg.Name, r.cfg.Window, r.settled, flow{r.cfg.Links, r.cfg.Base})
		if err == nil {
			return epoch
		}
		if !broker.Wait(ctx, broker.Reconnect.Delay(tries, rand.Float64())) {
			return nil
		}
	}
}

// closeTimeout bounds the orderly end of an epoch on which nothing is unanswered.
const closeTimeout = 5 * time.Second

// serve runs the lanes on one epoch, until it ends or the relay is to.
func (r *Relay) serve(ctx context.Context, epoch broker.Publisher) {
	defer context.AfterFunc(ctx, epoch.Abort)()
	s := &session{epoch: epoch}
	var lanes sync.WaitGroup
	for _, l := range r.lanes {
		lanes.Go(func() { l.run(ctx, s) })
	}
	lanes.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if r.killed.Load() {
		epoch.Abort()
	} else {
		_ = epoch.Close(closing) // nothing is open, so one that fails to close has cost nothing
	}
	<-epoch.Done()
}

// session is one epoch, which the lanes share.
type session struct {
	epoch broker.Publisher
	turn  sync.Mutex // held by the lane that writes
}

// publish writes one message and says what becomes of it when no settlement will. The end of the relay's context aborts the
// epoch, so the write needs no watch of its own.
func (s *session) publish(token uint64, m *broker.Message) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.epoch.Publish(context.Background(), token, m)
}

// kill asks whether to die at this point.
func (r *Relay) kill(at Point) bool {
	if !r.killed.Load() && r.cfg.Kill != nil && r.cfg.Kill(at) {
		r.killed.Store(true)
	}
	return r.killed.Load()
}

// settled hears the outcomes of publishes, from the driver's goroutine or, where nothing was settled, from a lane.
func (r *Relay) settled(answers []broker.Settlement) {
	for i := range answers {
		r.settle(&answers[i])
	}
}

func (r *Relay) settle(e *broker.Settlement) {
	to := r.slots[e.Token]
	l, w := to.lane, &to.lane.rows[to.row]
	w.outcome = e.Outcome
	r.cfg.Book.settle(w.id, e.Outcome)
	r.announce(l, w, r.cfg.Base.Offset(e.At))
	r.free <- int(e.Token)
	l.open.Done()
}

// announce tells the observers of an outcome. A row that is returned is not final: it stays unsent and is tried again.
func (r *Relay) announce(l *lane, w *row, at time.Duration) {
	scheduled, warmup := r.schedule(w)
	confirmed := w.outcome == broker.Confirmed
	if r.cfg.Source.orders {
		r.cfg.Load.Settled(event.Settled{
			Seq: w.seq, Scheduled: scheduled, Sent: w.sent, At: at, Outcome: w.outcome, Warmup: warmup, Final: confirmed,
		})
	}
	if confirmed {
		r.cfg.Observer.Relayed(Relayed{
			Table: r.cfg.Source.table, Seq: w.seq, Lag: w.age + at - l.claimed, At: at, Warmup: warmup, Duplicate: w.duplicate,
		})
	}
}

// schedule returns when the row's message was due; an event that is not the run's own was due when its publish began.
func (r *Relay) schedule(w *row) (due time.Duration, warmup bool) {
	if due = w.sent; r.cfg.Source.orders {
		due = r.cfg.Base.FromMicros(w.micros)
	}
	return due, due < r.cfg.MeasureFrom
}

// flow turns the driver's back pressure into link events.
type flow struct {
	links event.LinkObserver
	base  *timebase.Base
}

// Blocked implements broker.Flow.
func (f flow) Blocked(blocked bool, _ string, at time.Time) {
	f.links.Blocked("relay", blocked, f.base.Offset(at))
}
