package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"spillway/internal/broker/rabbit"
	"spillway/internal/crew"
	"spillway/internal/fault"
	"spillway/internal/latency"
	"spillway/internal/ledger"
	"spillway/internal/metrics"
	"spillway/internal/postgres"
	"spillway/internal/probe"
	"spillway/internal/result"
	"spillway/internal/storm"
	"spillway/internal/timebase"
	"spillway/internal/topology"
	"spillway/loadgen/outbox"
	"spillway/loadgen/publish"
)

// run is one experiment under way. Its fields are filled from top to bottom as the protocol goes on, by one goroutine;
// the parts below them synchronise themselves.
type run struct {
	o    Options
	seed uint64

	madeDir bool // this run made its folder

	// preflight
	admin      *rabbit.Driver
	management *rabbit.Management // nil without
	product    string
	brokerAt   string // version
	plan       *topology.Plan

	brokerLink, databaseLink *fault.Link // nil when no fault asks for one

	// provision
	broker     *rabbit.Provisioned
	declaredAt time.Time // when the queues were
	db         database

	// measure
	base      *timebase.Base
	ledger    book
	latencies *latency.Set
	lag       *latency.Recorder // of the generator itself
	logs      *latency.Logs
	storm     *storm.Recorder
	pace      *pace
	signals   *signals
	slowness  *slowness // nil when no fault asks for it
	metrics   *metrics.Metrics
	server    *metrics.Server
	crew      theCrew
	processes *crew.Processes // the same; nil when the workers are in this process
	generator load
	catchUps  []*publish.CatchUp // one per sink
	orders    *postgres.DB       // the load side's own pool; nil in mode direct
	outbox    *outbox.Sink       // nil but in mode outbox
	refusals  *refusals          // nil in a run that does not relay their events
	forgotten *forgetting        // nil in a run whose inbox forgets nothing
	probe     *probe.Probe
	timeline  *fault.Timeline
	watch     *watch

	// record
	startedAt    time.Time
	phases       []phase
	measured     measured
	deaths       deaths
	before       usage         // at the start of the run
	steal        cpuTimes      // the same, of the machine
	offeredUntil time.Duration // when the offering ended
	drained      bool
	interrupted  bool
	outOfTime    bool
	account      ledger.Account
	published    result.Publish
	redriven     *result.Redrive // nil without that phase
	redriveErr   error           // why it ended early
	held         int64           // messages that the broker holds for a dead-letter target that refuses them
}

// Run carries out one experiment and returns its result, which is also written to the run's folder. An error means that
// there is no result: it wraps ErrEnvironment when nothing could be started, and is internal otherwise.
func Run(ctx context.Context, o Options) (*result.Result, error) {
	r := &run{o: o, seed: seedOf(o.Profile.Seed), startedAt: time.Now(), before: used(), steal: readCPU()}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		r.unmakeDir()
		return nil, err
	}
	res, err := r.measure(ctx)
	if cleanErr := r.clean(err == nil && res.Verdict == result.Pass); cleanErr != nil && err == nil {
		fmt.Fprintf(o.Log, "clean up: %v\n", cleanErr)
	}
	return res, err
}

// prepare is the protocol up to the first connection of a worker. After an error nothing is left on the servers.
func (r *run) prepare(ctx context.Context) error {
	if err := r.preflight(ctx); err != nil {
		return err
	}
	if err := r.provision(ctx); err != nil {
		return err
	}
	if err := r.assemble(); err != nil {
		return errors.Join(err, r.remove())
	}
	return nil
}

// measure is the protocol from the first connection of a worker to the saved result.
func (r *run) measure(ctx context.Context) (*result.Result, error) {
	if err := r.carryOut(ctx); err != nil {
		return nil, err
	}
	if err := r.audit(); err != nil {
		return nil, err
	}
	res, err := r.result()
	if err != nil {
		return nil, err
	}
	if err := r.save(res); err != nil {
		return nil, err
	}
	r.lastScrape()
	return res, nil
}

func seedOf(given uint64) uint64 {
	if given != 0 {
		return given
	}
	return uint64(time.Now().UnixNano())
}

// environmentError marks an error as ErrEnvironment without a word more: its text is one sentence for a person.
type environmentError struct{ error }

func (e environmentError) Unwrap() []error { return []error{ErrEnvironment, e.error} }

func environment(format string, args ...any) error {
	return environmentError{fmt.Errorf(format, args...)}
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.o.Log, format+"\n", args...)
}

// close lets go of what the run holds in this process. It is safe at any point of the protocol.
func (r *run) close() {
	r.withdrawTarget()
	if r.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = r.server.Close(ctx) // by force when the bound is over
	}
	if r.broker != nil {
		r.broker.Close()
	}
	if r.orders != nil {
		r.orders.Close()
	}
	if r.refusals != nil {
		r.refusals.db.Close()
	}
	r.forgotten.close()
	if r.db != nil {
		r.db.Close()
	}
	if r.management != nil {
		r.management.Close()
	}
	for _, link := range []*fault.Link{r.brokerLink, r.databaseLink} {
		if link != nil {
			link.Close()
		}
	}
}

// closeTimeout bounds each step of letting go.
const closeTimeout = 5 * time.Second

// cleanTimeout bounds the removal of a run's vhost and schema.
const cleanTimeout = 30 * time.Second

// clean removes what the run made on the servers. After a run that did not pass it stays, for a look, and the caller is
// told where; on servers that end with the run there is nothing to keep.
func (r *run) clean(passed bool) error {
	if !r.o.Servers.Lasting {
		return nil
	}
	if r.o.Keep || !passed {
		r.say("kept: %s, %s (spillway doctor --clean removes what runs have left)", r.keptAtBroker(), r.schemaWords())
		return nil
	}
	return r.remove()
}

// keptAtBroker says what of the run stays on the broker.
func (r *run) keptAtBroker() string {
	switch t := &r.o.Profile.Topology; t.Isolation {
	case rabbit.IsolationVhost:
		return fmt.Sprintf("virtual host %q", r.broker.Vhost())
	case rabbit.IsolationPrefix:
		return fmt.Sprintf("the names that start with %q in virtual host %q", r.prefix()+".", r.broker.Vhost())
	default:
		return "the queues as they were declared"
	}
}

// schemaWords says what the run has in the database.
func (r *run) schemaWords() string {
	if schema := r.db.Schema(); schema != "" {
		return fmt.Sprintf("schema %q", schema)
	}
	return "no database"
}

// remove deletes the run's topology and schema.
func (r *run) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	return errors.Join(r.broker.Remove(ctx), r.db.Drop(ctx))
}

// makeDir makes the run's folder and proves that it can be written, before any load. What an earlier run left there goes: a
// verdict that is not this run's must not be found in it.
func (r *run) makeDir() error {
	if _, err := os.Stat(r.o.Dir); err != nil {
		r.madeDir = true
	}
	if err := os.MkdirAll(r.o.Dir, 0o755); err != nil {
		return environment("results folder %s cannot be made: %w; give another with -o", r.o.Dir, err)
	}
	probe, err := os.CreateTemp(r.o.Dir, ".write-test-")
	if err != nil {
		return environment("results folder %s cannot be written: %w; give another with -o", r.o.Dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()), removeOld(filepath.Join(r.o.Dir, result.FileResult)),
		os.RemoveAll(filepath.Join(r.o.Dir, stackLogs)))
}

// stackLogs is the folder of the servers' logs in a run's folder.
const stackLogs = "stack-logs"

func removeOld(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return environment("the result of an earlier run, %s, cannot be replaced: %w", path, err)
	}
	return nil
}

// unmakeDir removes the folder of a run that never got to its load, if this run made it and it is empty.
func (r *run) unmakeDir() {
	if r.madeDir {
		_ = os.Remove(r.o.Dir) // refused when something is in it
	}
}
