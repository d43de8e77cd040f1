package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// plainLoop publishes into a quorum queue of its own and consumes from it: a connection for each side, a window kept by a
// channel of tokens, NotifyPublish for the confirms, one ack for each delivery.
type plainLoop struct {
	uri       string
	queue     string
	load      task
	confirmed atomic.Int64
}

// runPlain runs a plain loop for warm-up and measured part.
func runPlain(ctx context.Context, s servers, load task) (m measurement, err error) {
	uri := s.uri
	p := &plainLoop{uri: uri, queue: "spillway-benchself-" + rand.Text(), load: load}
	producer, err := amqp.Dial(uri)
	if err != nil {
		return m, fmt.Errorf("dial: %w", err)
	}
	defer producer.Close()
	ch, err := producer.Channel()
	if err != nil {
		return m, fmt.Errorf("open channel: %w", err)
	}
	args := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
	if _, err := ch.QueueDeclare(p.queue, true, false, false, false, args); err != nil {
		return m, fmt.Errorf("declare queue %q: %w", p.queue, err)
	}
	consumer, err := amqp.Dial(uri)
	if err != nil {
		return m, fmt.Errorf("dial: %w", err)
	}
	defer consumer.Close()
	if err := p.consume(consumer); err != nil {
		return m, err
	}
	m, err = p.measure(ctx, ch)
	if _, deleteErr := ch.QueueDelete(p.queue, false, false, false); err == nil && deleteErr != nil {
		err = fmt.Errorf("delete queue %q: %w", p.queue, deleteErr)
	}
	return m, err
}

// consume acks every delivery, one by one, until the connection closes.
func (p *plainLoop) consume(conn *amqp.Connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Qos(p.load.Prefetch, 0, false); err != nil {
		return fmt.Errorf("set prefetch %d: %w", p.load.Prefetch, err)
	}
	deliveries, err := ch.Consume(p.queue, "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume from %q: %w", p.queue, err)
	}
	go func() {
		for d := range deliveries {
			_ = d.Ack(false) // fails when the connection closes, and then the loop ends
		}
	}()
	return nil
}

// measure publishes, and reads the counter at both ends of the measured part.
func (p *plainLoop) measure(ctx context.Context, ch *amqp.Channel) (m measurement, err error) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var publishing sync.WaitGroup
	failed := make(chan error, 1)
	publishing.Go(func() { failed <- p.publish(stop, ch) })
	defer publishing.Wait()
	defer cancel()
	if err := await(ctx, p.load.Warmup, failed); err != nil {
		return m, err
	}
	began, before := time.Now(), p.confirmed.Load()
	if err := await(ctx, p.load.Duration, failed); err != nil {
		return m, err
	}
	m.PerSecond = float64(p.confirmed.Load()-before) / time.Since(began).Seconds()
	m.Count = p.confirmed.Load()
	return m, nil
}

var errStopped = errors.New("the plain loop stopped early")

// await waits, unless the publisher or ctx ends first.
func await(ctx context.Context, d time.Duration, failed <-chan error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-failed:
		return fmt.Errorf("%w: %w", errStopped, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish keeps the window full until stop ends.
func (p *plainLoop) publish(stop context.Context, ch *amqp.Channel) error {
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("confirm mode: %w", err)
	}
	window := make(chan struct{}, p.load.Window)
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, p.load.Window))
	go func() {
		for c := range confirms { // closed with the channel
			if c.Ack {
				p.confirmed.Add(1)
			}
			<-window
		}
	}()
	body := make([]byte, p.load.Size)
	for seq := int64(0); ; seq++ {
		select {
		case <-stop.Done():
			return nil
		case window <- struct{}{}:
		}
		if err := ch.PublishWithContext(stop, "", p.queue, true, false, plainMessage(seq, body)); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
}

// plainMessage has the properties and headers of spillway's own messages, with what can be constant left constant.
func plainMessage(seq int64, body []byte) amqp.Publishing {
	now := time.Now()
	return amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json", Type: "order.created", Timestamp: now,
		MessageId: "019b0000-0000-7000-8000-000000000000", CorrelationId: "req-0", Body: body,
		Headers: amqp.Table{
			"x-run": "plain", "x-instance": int32(0), "x-seq": seq, "x-scheduled-at": now.UnixMicro(), "x-sent-at": now.UnixMicro(),
			"traceparent": "00-00000000000000010000000000000001-0000000000000001-01",
		},
	}
}
