package metrics_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/latency"
	"spillway/internal/metrics"
	"spillway/workers/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

func options() metrics.Options {
	return metrics.Options{
		RunID: "run-1", Profile: "steady", Version: "1.2.3", Revision: "abc",
		Tiers: []string{"5s", "30s", "5m"}, Faults: []string{"postgres.stop", "workers.fail"}, Latencies: latency.NewSet(),
	}
}

// observers are the metrics of a run with the recorders that they show.
type observers struct {
	*metrics.Metrics
	latencies *latency.Set
}

func (o observers) Sent(e event.Sent) {
	o.Metrics.Sent(e)
	o.latencies.Sent(e)
}

func (o observers) Settled(e event.Settled) {
	o.Metrics.Settled(e)
	o.latencies.Settled(e)
}

func (o observers) Handled(e event.Handled) {
	o.Metrics.Handled(e)
	o.latencies.Handled(e)
}

func setup(t *testing.T) (observers, *prometheus.Registry) {
	t.Helper()
	reg, o := prometheus.NewPedanticRegistry(), options()
	m, err := metrics.New(reg, o)
	if err != nil {
		t.Fatal(err)
	}
	return observers{m, o.Latencies}, reg
}

func gather(t *testing.T, reg prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value returns what the series of an instrument with these label values holds: a counter's or gauge's value, a
// histogram's sum.
func value(t *testing.T, reg prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	for _, f := range gather(t, reg) {
		for _, s := range f.GetMetric() {
			if f.GetName() == name && has(s, labels) {
				return s.GetCounter().GetValue() + s.GetGauge().GetValue() + s.GetHistogram().GetSampleSum()
			}
		}
	}
	t.Fatalf("no series %s with %v", name, labels)
	return 0
}

// has reports whether a series carries the given label values, given as name, value, name, value.
func has(s *dto.Metric, labels []string) bool {
	found := 0
	for i := 0; i < len(labels); i += 2 {
		for _, l := range s.GetLabel() {
			if l.GetName() == labels[i] && l.GetValue() == labels[i+1] {
				found++
			}
		}
	}
	return found == len(labels)/2
}

// run plays a small run with everything in it, 1 s long.
func run(m observers) {
	m.SetPhase("load")
	m.Arrived(event.Arrival{})
	m.Shed(9, 0)
	m.Queued()
	m.Queued()
	m.Relayed()
	m.latencies.RelayLag.Record(7 * ms)
	m.Sent(event.Sent{Scheduled: 100 * ms, At: 102 * ms})
	m.Sent(event.Sent{Scheduled: 100 * ms, At: 150 * ms, Republish: true})
	m.Settled(event.Settled{Scheduled: 100 * ms, Sent: 102 * ms, At: 140 * ms, Outcome: broker.Nacked})
	m.Settled(event.Settled{Scheduled: 100 * ms, Sent: 150 * ms, At: 160 * ms, Outcome: broker.Confirmed})
	m.Delivered(event.Delivered{Seq: 1, Attempt: 1})
	m.Delivered(event.Delivered{Seq: 1, Attempt: 2, Redelivered: true})
	m.Handled(event.Handled{Seq: 1, Attempt: 1, Result: event.Transient})
	m.Retried(event.Retried{Seq: 1, Attempt: 1, Tier: "5s"})
	m.Republished(broker.Confirmed, 0)
	m.Handled(event.Handled{
		Seq: 1, Attempt: 3, Scheduled: 100 * ms, Started: 395 * ms, Finished: 400 * ms, Result: event.Applied,
	})
	m.Parked(event.Parked{Seq: 2, Attempt: 5, Reason: string(retry.AttemptsExhausted)})
	m.Released(3, 0)
	m.Forgotten(7)
	m.Acked(4, 0)
	m.Reconnected("producer", 0)
	m.ConsumerCancelled(0)
	breakage(m.Metrics)
	gauges(m.Metrics)
}

// breakage blocks two producers and opens the breaker, and leaves one blocked and the breaker half-open.
func breakage(m *metrics.Metrics) {
	m.Blocked("producer", true, 100*ms)
	m.Blocked("producer", true, 300*ms)
	m.Blocked("producer", false, 600*ms)
	m.BreakerChanged("open", 200*ms)
	m.BreakerChanged("half-open", 700*ms)
	m.BreakerChanged("open", 800*ms)
	m.BreakerChanged("closed", 900*ms)
	m.BreakerChanged("open", 950*ms)
	m.BreakerChanged("half-open", time.Second)
}

func gauges(m *metrics.Metrics) {
	m.SetInFlight(11)
	m.SetUnacked(12)
	m.SetRetryDebt(13)
	m.SetDepth(metrics.Work, 14)
	m.SetDepth("30s", 15)
	m.SetOldestAge(metrics.Unsettled, 1500*ms)
	m.SetOldestAge("5m", 2500*ms)
	m.SetFault("postgres.stop", true)
	m.SetPool(3, 2, 8)
	m.SetPoolWait(500 * ms)
	m.SetPoolWait(400 * ms)
	m.SetPoolWait(750 * ms)
}

// shown is what the series hold after run.
var shown = []struct {
	name   string
	labels []string
	want   float64
}{
	{"spillway_build_info", []string{"version", "1.2.3", "revision", "abc"}, 1},
	{"spillway_arrivals_total", nil, 1},
	{"spillway_shed_total", nil, 1},
	{"spillway_publishes_total", []string{"write", "first"}, 1},
	{"spillway_publishes_total", []string{"write", "again"}, 1},
	{"spillway_publish_outcomes_total", []string{"outcome", "confirmed"}, 1},
	{"spillway_publish_outcomes_total", []string{"outcome", "nacked"}, 1},
	{"spillway_publish_outcomes_total", []string{"outcome", "unknown"}, 0},
	{"spillway_schedule_lag_seconds", nil, 0.002},
	{"spillway_confirm_latency_seconds", nil, 0.010},
	{"spillway_acceptance_latency_seconds", nil, 0.060},
	{"spillway_deliveries_total", []string{"redelivered", "true"}, 1},
	{"spillway_deliveries_total", []string{"redelivered", "false"}, 1},
	{"spillway_handled_total", []string{"result", "applied"}, 1},
	{"spillway_handled_total", []string{"result", "transient"}, 1},
	{"spillway_retries_total", []string{"tier", "5s"}, 1},
	{"spillway_parked_total", []string{"reason", "attempts-exhausted"}, 1},
	{"spillway_message_retries", nil, 2 + 4},
	{"spillway_sojourn_seconds", nil, 0.3},
	{"spillway_service_seconds", nil, 0.005},
	{"spillway_released_total", nil, 1},
	{"spillway_inbox_forgotten_total", nil, 7},
	{"spillway_acks_total", nil, 4},
	{"spillway_worker_publish_outcomes_total", []string{"outcome", "confirmed"}, 1},
	{"spillway_reconnects_total", []string{"role", "producer"}, 1},
	{"spillway_reconnects_total", []string{"role", "worker"}, 0},
	{"spillway_consumer_cancels_total", nil, 1},
	{"spillway_blocked_connections", []string{"role", "producer"}, 1},
	{"spillway_blocked_seconds_total", []string{"role", "producer"}, 0.2 + 2*0.3},
	{"spillway_breaker_state", []string{"state", "half-open"}, 1},
	{"spillway_breaker_state", []string{"state", "closed"}, 0},
	{"spillway_breaker_opens_total", nil, 3},
	{"spillway_breaker_open_seconds_total", nil, 0.7 + 0.05},
	{"spillway_in_flight_messages", nil, 11},
	{"spillway_unacked_messages", nil, 12},
	{"spillway_retry_debt_messages", nil, 13},
	{"spillway_queue_ready_messages", []string{"queue", "work"}, 14},
	{"spillway_queue_ready_messages", []string{"queue", "30s"}, 15},
	{"spillway_oldest_age_seconds", []string{"place", "unsettled"}, 1.5},
	{"spillway_oldest_age_seconds", []string{"place", "5m"}, 2.5},
	{"spillway_phase", []string{"phase", "load"}, 1},
	{"spillway_phase", []string{"phase", "drain"}, 0},
	{"spillway_fault_active", []string{"kind", "postgres.stop"}, 1},
	{"spillway_fault_active", []string{"kind", "workers.fail"}, 0},
	{"spillway_pool_connections", []string{"state", "acquired"}, 3},
	{"spillway_pool_connections", []string{"state", "idle"}, 2},
	{"spillway_pool_limit_connections", nil, 8},
	{"spillway_pool_wait_seconds_total", nil, 0.75},
}

func TestARunShowsInEverySeries(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	run(m)
	for _, row := range shown {
		labels := append([]string{"run_id", "run-1", "profile", "steady"}, row.labels...)
		if got := value(t, reg, row.name, labels...); math.Abs(got-row.want) > 0.001*row.want { // recorders keep three digits
			t.Errorf("%s %v is %v, want %v", row.name, row.labels, got, row.want)
		}
	}
}

func TestEveryInstrumentMovesInARun(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	run(m)
	for _, f := range gather(t, reg) {
		moved := false
		for _, s := range f.GetMetric() {
			moved = moved || s.GetCounter().GetValue()+s.GetGauge().GetValue() > 0 || s.GetHistogram().GetSampleCount() > 0
		}
		if !moved {
			t.Errorf("%s never moved", f.GetName())
		}
	}
}

func TestTheWarmUpCountsAndHasNoLatency(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	m.Sent(event.Sent{At: ms, Warmup: true})
	m.Settled(event.Settled{At: ms, Outcome: broker.Confirmed, Warmup: true})
	m.Handled(event.Handled{Attempt: 1, Finished: ms, Result: event.Applied, Warmup: true})
	for name, want := range map[string]float64{
		"spillway_schedule_lag_seconds": 0, "spillway_confirm_latency_seconds": 0, "spillway_acceptance_latency_seconds": 0,
		"spillway_sojourn_seconds": 0, "spillway_service_seconds": 0,
	} {
		if got := value(t, reg, name); got != want {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	if got := value(t, reg, "spillway_publish_outcomes_total", "outcome", "confirmed"); got != 1 {
		t.Errorf("%v confirmed, want 1", got)
	}
	if got := value(t, reg, "spillway_handled_total", "result", "applied"); got != 1 {
		t.Errorf("%v applied, want 1", got)
	}
}

func TestAForeignMessageHasNoSojourn(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	m.Handled(event.Handled{Seq: -1, Attempt: 1, Started: 2 * ms, Finished: 5 * ms, Result: event.Applied})
	if got := value(t, reg, "spillway_sojourn_seconds"); got != 0 {
		t.Errorf("sojourn %v, want none", got)
	}
	if got := value(t, reg, "spillway_service_seconds"); math.Abs(got-0.003) > 3e-6 {
		t.Errorf("service time %v, want 0.003", got)
	}
}

func TestALabelValueOutsideItsSetIsCountedAsOther(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	m.Retried(event.Retried{Tier: "7s"})
	m.Parked(event.Parked{Attempt: 1, Reason: "id 4711: no such row"})
	m.Reconnected("bystander", 0)
	m.SetPhase("lunch")
	for name, label := range map[string]string{
		"spillway_retries_total": "tier", "spillway_parked_total": "reason", "spillway_reconnects_total": "role",
		"spillway_phase": "phase",
	} {
		if got := value(t, reg, name, label, "other"); got != 1 {
			t.Errorf("%s has %v under other, want 1", name, got)
		}
	}
	m.SetPhase("audit")
	if got := value(t, reg, "spillway_phase", "phase", "other"); got != 0 {
		t.Errorf("phase other is %v after a known one, want 0", got)
	}
}

func TestASecondRunInOneRegistryIsRefusedUnlessItsLabelsDiffer(t *testing.T) {
	t.Parallel()
	_, reg := setup(t)
	var twice prometheus.AlreadyRegisteredError
	if _, err := metrics.New(reg, options()); !errors.As(err, &twice) {
		t.Errorf("error %v, want that it is registered already", err)
	}
	second := options()
	second.RunID = "run-2"
	if _, err := metrics.New(reg, second); err != nil {
		t.Errorf("a second run id: %v", err)
	}
	second.RunID = "\xff"
	if _, err := metrics.New(reg, second); err == nil {
		t.Error("a run id that is not UTF-8 was taken")
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	t.Parallel()
	o, reg := options(), prometheus.NewRegistry()
	o.Profile = "a\"b\\c\nd"
	if _, err := metrics.New(reg, o); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, serve(t, reg, ""))
	if want := `profile="a\"b\\c\nd"`; !contains(text, want) {
		t.Errorf("the scrape lacks %s", want)
	}
}

func TestTheNamesPassTheLinter(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	run(m)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func BenchmarkSettled(b *testing.B) {
	m, err := metrics.New(prometheus.NewRegistry(), options())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Settled(event.Settled{At: 3 * ms, Outcome: broker.Confirmed})
	}
}

func BenchmarkHandled(b *testing.B) {
	m, err := metrics.New(prometheus.NewRegistry(), options())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Handled(event.Handled{Attempt: 1, Finished: 3 * ms, Result: event.Applied})
	}
}

func TestRetriesPerMessageFallIntoTheirBuckets(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	for _, attempt := range []int{1, 1, 3, 9, 1000} {
		m.Parked(event.Parked{Attempt: attempt, Reason: "attempts-exhausted"})
	}
	for _, f := range gather(t, reg) {
		if f.GetName() != "spillway_message_retries" {
			continue
		}
		for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
			want := map[float64]uint64{0: 2, 1: 2, 2: 3, 7: 3, 10: 4, 50: 4}
			if n, told := want[b.GetUpperBound()]; told && n != b.GetCumulativeCount() {
				t.Errorf("%d messages of at most %v retries, want %d", b.GetCumulativeCount(), b.GetUpperBound(), n)
			}
		}
		if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 5 {
			t.Errorf("%d messages, want 5", h.GetSampleCount())
		}
	}
}
