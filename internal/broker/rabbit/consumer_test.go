package rabbit

import (
	"errors"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
)

// filled publishes n messages to the plan's work queue and waits for their confirms.
func filled(t *testing.T, b *bundle, exchange, key string, n int) {
	t.Helper()
	got := newBook()
	p := openPublisher(t, b.driver, 500, got.settled, nil)
	for i := range n {
		if err := p.Publish(t.Context(), uint64(i), message(exchange, key, int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every publish is confirmed", func() bool { return got.count(broker.Confirmed) == n })
	if err := p.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

func openConsumer(t *testing.T, b *bundle, queue string, prefetch int) broker.Consumer {
	t.Helper()
	c, err := b.driver.OpenConsumer(deadline(t), t.Name(), broker.ConsumerOptions{Queue: queue, Tag: "c", Prefetch: prefetch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Abort()
		<-c.Done()
	})
	return c
}

func TestADeliveryCarriesWhatWasPublished(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	filled(t, b, plan.Orders, "order.created", 1)
	c := openConsumer(t, b, plan.Work, 10)
	d := (<-c.Deliveries())[0]
	want := message(plan.Orders, "order.created", 0)
	if d.MessageID != want.MessageID || d.Type != want.Type || d.Exchange != want.Exchange || d.RoutingKey != want.RoutingKey ||
		d.ContentType != want.ContentType || d.Headers != want.Headers || string(d.Body) != string(want.Body) {
		t.Errorf("delivered %+v", d)
	}
	if d.DeliveryCount != 0 || d.Redelivered {
		t.Errorf("a first delivery has count %d, redelivered %v", d.DeliveryCount, d.Redelivered)
	}
	if err := c.Reject(d.Tag, true); err != nil {
		t.Fatal(err)
	}
	again := (<-c.Deliveries())[0]
	if again.DeliveryCount != 1 || !again.Redelivered {
		t.Errorf("a second delivery has count %d, redelivered %v", again.DeliveryCount, again.Redelivered)
	}
	if err := c.Nack(again.Tag); err != nil {
		t.Fatal(err)
	}
	third := (<-c.Deliveries())[0]
	t.Logf("after a reject: %d deliveries failed, %d acquired; after a nack: %d and %d", again.DeliveryCount, again.AcquiredCount, third.DeliveryCount, third.AcquiredCount)
	if again.Returns() != 1 || third.Returns() != 2 {
		t.Errorf("%d and %d returns, want 1 and 2", again.Returns(), third.Returns())
	}
	if err := c.Ack(third.Tag, false); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(deadline(t)); err != nil || c.Err() != nil {
		t.Errorf("close: %v, then Err is %v", err, c.Err())
	}
	if _, open := <-c.Deliveries(); open {
		t.Error("a delivery after Close")
	}
	depth, err := adminFor(t, b).Depth(deadline(t), plan.Work)
	if err != nil || depth.Ready != 0 {
		t.Errorf("the queue has %+v (%v), want it empty", depth, err)
	}
}

// adminFor returns an admin that ends with the test.
func adminFor(t *testing.T, b *bundle) *Admin {
	t.Helper()
	a := NewAdmin(b.driver)
	t.Cleanup(a.Close)
	return a
}

func TestCancelHandsOverWhatIsInFlightAndKeepsItValid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	filled(t, b, plan.Orders, "order.created", 100)
	c := openConsumer(t, b, plan.Work, 40)
	first := <-c.Deliveries()
	if err := c.Cancel(); err != nil {
		t.Fatal(err)
	}
	n, last := len(first), first[len(first)-1].Tag
	for batch := range c.Deliveries() {
		n, last = n+len(batch), batch[len(batch)-1].Tag
	}
	if n != 40 {
		t.Errorf("%d deliveries were handed over, want the prefetch, 40", n)
	}
	if c.Err() != nil {
		t.Errorf("Err is %v after our own cancel", c.Err())
	}
	if err := c.Ack(last, true); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	depth, err := adminFor(t, b).Depth(deadline(t), plan.Work)
	if err != nil || depth.Ready != 60 {
		t.Errorf("the queue has %+v (%v), want 60 ready", depth, err)
	}
}

func TestACancelByTheBrokerIsSeenAndStopsAcks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	filled(t, b, plan.Orders, "order.created", 5)
	c := openConsumer(t, b, plan.Work, 2)
	d := (<-c.Deliveries())[0]
	err := adminFor(t, b).do(deadline(t), "delete", func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(plan.Work, false, false, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if !errors.Is(c.Err(), broker.ErrConsumerCancelled) {
		t.Errorf("Err is %v", c.Err())
	}
	if err := c.Ack(d.Tag, false); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("an ack after the cancel: %v", err)
	}
	for range c.Deliveries() { // must end
	}
	if err := c.Close(deadline(t)); err != nil {
		t.Error(err)
	}
}

func TestAnAckOfAnUnknownTagEndsTheEpochWithItsCause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	c := openConsumer(t, b, plan.Work, 2)
	if err := c.Ack(99, false); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	var reply *amqp.Error
	if !errors.As(c.Err(), &reply) || reply.Code != amqp.PreconditionFailed || !errors.Is(c.Err(), broker.ErrClosed) {
		t.Errorf("Err is %v", c.Err())
	}
}

func TestAbortReturnsTheUnsettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	filled(t, b, plan.Orders, "order.created", 10)
	c := openConsumer(t, b, plan.Work, 10)
	<-c.Deliveries()
	c.Abort()
	<-c.Done()
	if !errors.Is(c.Err(), broker.ErrClosed) {
		t.Errorf("Err is %v", c.Err())
	}
	admin := adminFor(t, b)
	eventually(t, "all messages are back", func() bool {
		depth, err := admin.Depth(deadline(t), plan.Work)
		return err == nil && depth.Ready == 10
	})
}

func TestAPrefetchOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	d, err := New(Config{URIs: []string{"amqp://localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, prefetch := range []int{0, -1, 65536} {
		_, err := d.OpenConsumer(t.Context(), "x", broker.ConsumerOptions{Queue: "q", Prefetch: prefetch})
		if !errors.Is(err, ErrBadPrefetch) {
			t.Errorf("a prefetch of %d: %v", prefetch, err)
		}
	}
}

func TestConsumingAMissingQueueSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.driver.OpenConsumer(deadline(t), "x", broker.ConsumerOptions{Queue: "nothing", Tag: "c", Prefetch: 1})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
