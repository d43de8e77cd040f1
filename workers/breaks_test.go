package workers_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit/rabbittest"
	"spillway/internal/event"
	"spillway/workers/breaker"
	"spillway/workers/service"
)

// through sends the whole service through a proxy.
func through(t *testing.T, proxy **rabbittest.Proxy) func(*rabbittest.Broker) broker.Driver {
	t.Helper()
	return func(b *rabbittest.Broker) broker.Driver {
		*proxy = b.Proxy(t)
		return (*proxy).Driver
	}
}

// TestConsumersCutUnderLoadApplyEachMessageOnce breaks every connection of the service, several times, with acks held back
// in batches and some messages on the retry path. A stale tag would end a channel with 406 or settle another message.
func TestConsumersCutUnderLoadApplyEachMessageOnce(t *testing.T) {
	t.Parallel()
	var proxy *rabbittest.Proxy
	b := start(t, func(o *options) {
		o.driver, o.AckBatch, o.AckInterval, o.Budget.Attempts = through(t, &proxy), 10, 30*time.Millisecond, 1000
		o.ServiceTime = fixed(t, time.Millisecond)
	})
	always(b.failing, service.Shares{Transient: 0.1})
	const n = 1500
	b.publish(b.messages(n)...)
	const cuts = 4
	for i := range cuts {
		handled := b.log.read(func(l *log) int { return len(l.handled) })
		b.eventually("messages are handled", func(l *log) int { return len(l.handled) }, handled+100)
		proxy.Cut()
		b.eventually("the workers are back", func(l *log) int { return l.reconnected["worker"] }, 2*(i+1))
	}
	b.eventually("all are applied", applied, n)
	rabbittest.Eventually(t, "the queue is empty", func() bool { return b.Ready(t, b.Plan.Work) == 0 })
	b.stop()
	b.wantEffects(n)
	if got := b.log.reconnected["worker"]; got != 2*cuts {
		t.Errorf("%d reconnects of 2 workers in %d cuts: a channel ended of its own", got, cuts)
	}
	redelivered := 0
	for _, d := range b.log.delivered {
		if d.Redelivered {
			redelivered++
		}
	}
	if redelivered == 0 {
		t.Error("nothing was redelivered: the cuts found nothing unacked")
	}
	t.Logf("%d deliveries of %d messages, %d redelivered, %d duplicates absorbed", len(b.log.delivered), n, redelivered, b.log.results(event.Duplicate))
}

func TestACancelByTheBrokerIsNoticedCountedAndMended(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.publish(b.messages(10)...)
	b.eventually("the first are acked", acked, 10)
	b.Tamper(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(b.Plan.Work, false, false, false)
		return err
	})
	b.eventually("both consumers are cancelled", func(l *log) int { return l.cancelled }, 2)
	if err := b.Admin.Declare(rabbittest.Context(t), b.Plan); err != nil {
		t.Fatal(err)
	}
	var more []*broker.Message
	for seq := int64(10); seq < 30; seq++ {
		more = append(more, b.message(seq))
	}
	b.publish(more...)
	b.eventually("the rest are acked", acked, 30)
	b.eventually("both workers are back", func(l *log) int { return l.reconnected["worker"] }, 2)
	b.stop()
	b.wantEffects(30)
	if b.log.cancelled != 2 {
		t.Errorf("%d cancels, want 2", b.log.cancelled)
	}
}

// TestAHardStopIsBoundedAndCostsNoAttempt stops handlers in the middle of an hour of work.
func TestAHardStopIsBoundedAndCostsNoAttempt(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) { o.ServiceTime, o.HandlerTimeout = fixed(t, time.Hour), 2*time.Hour })
	b.publish(b.messages(60)...)
	b.eventually("the workers hold their prefetch", func(l *log) int { return len(l.delivered) }, 40)
	b.abort()
	b.awaitEnd(5 * time.Second)
	b.wantReady(b.Plan.Work, 60)
	if len(b.log.handled) != 0 || len(b.log.retried) != 0 || b.log.released != 40 || len(b.effects()) != 0 {
		t.Errorf("%d handled, %d retried, %d released; want all 40 released and no more", len(b.log.handled), len(b.log.retried), b.log.released)
	}
	for _, d := range b.take(b.Plan.Work, 60) {
		if d.Headers.Attempt() != 1 {
			t.Fatalf("message %d is on attempt %d", d.Headers.Seq, d.Headers.Attempt())
		}
	}
}

// TestAHardStopIsBoundedWhileTheSocketIsBlocked has an orderly stop hang on a broker that reads no more.
func TestAHardStopIsBoundedWhileTheSocketIsBlocked(t *testing.T) {
	t.Parallel()
	var proxy *rabbittest.Proxy
	b := start(t, func(o *options) { o.driver = through(t, &proxy) })
	b.publish(b.messages(10)...)
	b.eventually("all are acked", acked, 10)
	proxy.Stall(true)
	b.service.Stop()
	select {
	case <-b.ended:
		t.Fatal("the orderly stop went through a connection that is not read")
	case <-time.After(100 * time.Millisecond):
	}
	b.abort()
	b.awaitEnd(5 * time.Second)
}

// steadily fails unless a condition holds for a while. It is a bound on what must not happen, which no signal tells.
func (b *bench) steadily(what string, condition func() bool) {
	b.Helper()
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if !condition() {
			b.Fatalf("no longer holds: %s", what)
		}
	}
}

// TestAnOpenBreakerStartsNoHandlerAndBurnsNoAttempt: what the workers hold stays within the prefetch, and stays what it was.
func TestAnOpenBreakerStartsNoHandlerAndBurnsNoAttempt(t *testing.T) {
	t.Parallel()
	const n, prefetch, opens = 100, 10, 4
	b := start(t, func(o *options) {
		longTier(o)
		o.Workers, o.Prefetch, o.Concurrency = 2, prefetch, 1
		o.Breaker = &breaker.Settings{FailureRatio: 0.5, Window: time.Minute, MinSamples: opens, OpenFor: time.Hour, Probes: 1}
	})
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.messages(n)...)
	b.eventually("the breaker opens", func(l *log) int { return len(l.states) }, 1)
	b.eventually("what failed is settled", acked, opens)
	// Each worker had one handler at work when it opened, at most.
	handled := func(l *log) int { return len(l.handled) }
	rabbittest.Eventually(t, "the prefetch is full", func() bool { return b.Ready(t, b.Plan.Work)+b.log.read(acked)+2*prefetch == n })
	started := b.log.read(handled)
	b.steadily("no handler starts and unacked is the prefetch", func() bool {
		return b.log.read(handled) == started && b.Ready(t, b.Plan.Work)+b.log.read(acked)+2*prefetch == n
	})
	if started > opens+1 {
		t.Errorf("%d handlers ran, want the %d that opened the breaker, and one that was at work beside", started, opens)
	}
	b.abort()
	b.awaitEnd(5 * time.Second)
	b.wantReady(b.Plan.Work, n-started)
	for _, d := range b.take(b.Plan.Work, n-started) {
		if d.Headers.Attempt() != 1 || d.Headers.Failure.Class != "" {
			t.Fatalf("message %d is on attempt %d with %+v", d.Headers.Seq, d.Headers.Attempt(), d.Headers.Failure)
		}
	}
}

// TestADeliveryThatWaitsAtTheBreakerGoesBackWithItsChannel: what waits is held, not started, so its worker must be free to
// open a new channel, and the message comes again as it was.
func TestADeliveryThatWaitsAtTheBreakerGoesBackWithItsChannel(t *testing.T) {
	t.Parallel()
	var proxy *rabbittest.Proxy
	b := start(t, func(o *options) {
		longTier(o)
		o.driver, o.Workers, o.Concurrency = through(t, &proxy), 1, 2
		o.Breaker = &breaker.Settings{FailureRatio: 0.5, Window: time.Minute, MinSamples: 1, OpenFor: time.Hour, Probes: 1}
	})
	always(b.failing, service.Shares{Transient: 1})
	b.publish(b.message(0))
	b.eventually("the breaker opens", func(l *log) int { return len(l.states) }, 1)
	b.eventually("what failed is settled", acked, 1)
	b.publish(b.message(1), b.message(2), b.message(3))
	b.eventually("three wait", func(l *log) int { return len(l.delivered) }, 4)
	proxy.Cut()
	b.eventually("they went back", func(l *log) int { return l.released }, 3)
	b.eventually("and came again", func(l *log) int { return len(l.delivered) }, 7)
	for _, d := range b.log.delivered[4:] {
		if d.Attempt != 1 || !d.Redelivered {
			t.Errorf("delivered again as %+v", d)
		}
	}
	if len(b.log.handled) != 1 {
		t.Errorf("%d handlers ran, want the one that opened the breaker", len(b.log.handled))
	}
}

func TestTheBreakerClosesWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) {
		o.Breaker = &breaker.Settings{FailureRatio: 0.5, Window: time.Minute, MinSamples: 10, OpenFor: 50 * time.Millisecond, Probes: 2}
		o.Budget.Attempts = 1000
	})
	always(b.failing, service.Shares{Transient: 1})
	const n = 200
	b.publish(b.messages(n)...)
	b.eventually("it opens, probes and opens again", func(l *log) int { return len(l.states) }, 5)
	failed := b.log.read(func(l *log) int { return len(l.handled) })
	b.failing.Close()
	b.eventually("all are applied", applied, n)
	b.stop()
	b.wantEffects(n)
	states := b.log.states
	if last := states[len(states)-1]; last != "closed" || states[0] != "open" || states[1] != "half-open" || states[2] != "open" {
		t.Errorf("states %v, want open, half-open, open ... closed", states)
	}
	// 10 open it; 8 handlers may be at work then; each half-open has 2 probes.
	if most := 10 + 8 + 2*len(states); failed > most {
		t.Errorf("%d attempts failed, want at most %d in %d states", failed, most, len(states))
	}
}

func TestWhatAMessageDoesWrongDoesNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *options) {
		o.Breaker = &breaker.Settings{FailureRatio: 0.1, Window: time.Minute, MinSamples: 1, OpenFor: time.Hour, Probes: 1}
		o.Budget.UnknownAttempts = 1
	})
	always(b.failing, service.Shares{Permanent: 0.5, Unknown: 0.5})
	b.publish(b.messages(60)...)
	b.eventually("all are handled", func(l *log) int { return len(l.handled) }, 60)
	if len(b.log.states) != 0 {
		t.Errorf("states %v", b.log.states)
	}
}
