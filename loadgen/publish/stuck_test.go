package publish_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spillway/internal/broker"
	"spillway/internal/event"
	"spillway/internal/timebase"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

// puppet is a driver whose every answer a test gives by hand, on a bubble's clock: what a real broker does only at moments
// that nobody can choose.
type puppet struct {
	mu      sync.Mutex
	settled func([]broker.Settlement)
	flow    broker.Flow
	written []written
	done    chan struct{}
	once    sync.Once
}

type written struct {
	token uint64
	seq   int64
}

func (p *puppet) OpenPublisher(_ context.Context, _ string, _ int, settled func([]broker.Settlement), flow broker.Flow) (broker.Publisher, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled, p.flow = settled, flow
	return p, nil
}

func (p *puppet) OpenConsumer(context.Context, string, broker.ConsumerOptions) (broker.Consumer, error) {
	return nil, errors.New("not asked for")
}

func (p *puppet) Publish(_ context.Context, token uint64, m *broker.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = append(p.written, written{token, m.Headers.Seq})
	return nil
}

func (p *puppet) Done() <-chan struct{}       { return p.done }
func (p *puppet) Err() error                  { return nil }
func (p *puppet) Abort()                      { p.once.Do(func() { close(p.done) }) }
func (p *puppet) Close(context.Context) error { p.Abort(); return nil }

// seqs returns what was written, in order.
func (p *puppet) seqs() (all []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.written {
		all = append(all, w.seq)
	}
	return all
}

// answer settles the i-th write.
func (p *puppet) answer(i int, o broker.Outcome) {
	p.mu.Lock()
	token := p.written[i].token
	p.mu.Unlock()
	p.settled([]broker.Settlement{{Token: token, Outcome: o, At: time.Now()}})
}

// puppeteer runs a publisher on a puppet.
func puppeteer(t *testing.T, window int) (*puppet, *publish.Publisher, *book, *timebase.Base, <-chan error) {
	t.Helper()
	d, b, now := &puppet{done: make(chan struct{})}, newBook(), timebase.New()
	p := publish.New(publish.Config{
		Driver: d, Base: now, Window: window, ShedAfter: time.Hour, CatchUp: publish.NewCatchUp(publish.Burst, nil), Observer: b, Links: b,
		Factory: &publish.Factory{Base: now, Size: draw.Fixed(512), SKUs: []string{"a"}, CountMin: 1, CountMax: 1},
	})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	return d, p, b, now, ended
}

func want(t *testing.T, what string, got, wanted []int64) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: written %v, want %v", what, got, wanted)
	}
}

// TestARepublishThatFindsNoSlotKeepsItsPlace has the one slot taken by a message that is not answered for a while.
func TestARepublishThatFindsNoSlotKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p, b, now, ended := puppeteer(t, 1)
		p.Offer(publish.Arrival{Seq: 0, Scheduled: now.Now()})
		p.Offer(publish.Arrival{Seq: 1, Scheduled: now.Now()})
		synctest.Wait()
		d.answer(0, broker.Nacked)
		synctest.Wait()
		want(t, "after the nack", d.seqs(), []int64{0, 1})
		time.Sleep(100 * time.Millisecond) // the first is due again, and waits for a slot before the third does
		p.Offer(publish.Arrival{Seq: 2, Scheduled: now.Now()})
		p.Finish()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		want(t, "while the window is full", d.seqs(), []int64{0, 1})
		d.answer(1, broker.Confirmed)
		synctest.Wait()
		want(t, "with a slot again", d.seqs(), []int64{0, 1, 0})
		d.answer(2, broker.Confirmed)
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "in the end", d.seqs(), []int64{0, 1, 0, 2})
		d.answer(3, broker.Confirmed)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.balance(t, 3, true)
	})
}

func TestAnUnknownPublishWaitsBeforeItGoesOutAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p, b, now, ended := puppeteer(t, 10)
		p.Offer(publish.Arrival{Seq: 0, Scheduled: now.Now()})
		p.Finish()
		synctest.Wait()
		for i := range 6 {
			d.answer(i, broker.Unknown)
			answered := now.Now()
			for len(d.seqs()) == i+1 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			least := 10 * time.Millisecond << i
			if waited := now.Now() - answered; waited < least || waited > 2*least+time.Millisecond {
				t.Errorf("try %d went out after %v, want %v to %v", i+2, waited, least, 2*least)
			}
		}
		d.answer(6, broker.Returned)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.balance(t, 1, true)
	})
}

// TestArrivalsBeyondTheBacklogAreShedAtOnce offers to a publisher that nobody runs.
func TestArrivalsBeyondTheBacklogAreShedAtOnce(t *testing.T) {
	t.Parallel()
	b := &counter{}
	p := publish.New(publish.Config{Base: timebase.New(), Window: 1, CatchUp: publish.NewCatchUp(publish.Burst, nil), Observer: b, Factory: &publish.Factory{}})
	const backlog, more = 1 << 18, 25
	for seq := range int64(backlog + more) {
		p.Offer(publish.Arrival{Seq: seq})
	}
	if b.arrived != backlog+more || b.shed != more {
		t.Errorf("%d arrived, %d shed; want %d and %d", b.arrived, b.shed, backlog+more, more)
	}
}

// counter counts arrivals; one goroutine tells it.
type counter struct {
	event.NopLoad
	arrived, shed int
}

func (c *counter) Arrived(event.Arrival)     { c.arrived++ }
func (c *counter) Shed(int64, time.Duration) { c.shed++ }

func TestBackPressureIsTheProducers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p, b, _, ended := puppeteer(t, 1)
		synctest.Wait()
		d.flow.Blocked(true, "low on memory", time.Now())
		d.flow.Blocked(false, "", time.Now())
		p.Finish()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if wanted := []string{"producer true", "producer false"}; !slices.Equal(b.flow, wanted) {
			t.Errorf("heard %v, want %v", b.flow, wanted)
		}
	})
}
