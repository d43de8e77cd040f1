package rabbit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
	"spillway/internal/envelope"
)

const (
	// auditPoll is how often the depths are looked at while reading.
	auditPoll = 50 * time.Millisecond
	// auditReturn bounds the wait for the messages to be ready again. They come back when the broker has seen the end of
	// the connection; one whose TTL ended meanwhile may be gone by then, so the wait ends without complaint.
	auditReturn = 5 * time.Second
	// auditQuiet is how many looks in a row must find every queue empty and nothing new read. A message on its way from
	// an expired tier to the work queue is in neither for about a round trip inside the broker.
	auditQuiet = 4
)

// Lying is one message found in a queue: what identifies it, and no more, since there may be millions.
type Lying struct {
	Seq       int64 // envelope.NoSeq when the message carries none
	Instance  int
	Run       string
	MessageID string
	SentAt    int64 // x-sent-at, microseconds since the Unix epoch; 0 when absent
}

// ReadAll reads every message that lies in the queues, and leaves them there: each is held unsettled until all are read,
// and then given back. Queues are read together and held together, so a message that moves from one to another meanwhile
// (an expired retry) is found once at least; one that is found twice was delivered twice.
//
// It is complete when passive declares find nothing ready, several times in a row, and nothing new came. Messages that
// the broker itself holds on their way to a dead-letter target that refuses them cannot be read by anyone: see
// QueueDetails.DeadLetterPending. Consumers must have gone before. Giving back counts as a return on brokers before 4.3,
// so a message at its delivery limit moves on after it was read.
func (a *Admin) ReadAll(ctx context.Context, queues []string) (map[string][]Lying, error) {
	conn, err := a.driver.dial(ctx, "spillway audit")
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	stop := context.AfterFunc(ctx, conn.abort)
	defer stop()
	r := &audit{admin: a, conn: conn}
	for _, name := range queues {
		r.queues = append(r.queues, &auditQueue{name: name})
	}
	found, err := r.run(ctx)
	if closeErr := conn.close(ctx); err == nil {
		err = closeErr // the messages are back only when the connection is gone
	}
	r.wait()
	if ctx.Err() != nil { // the connection was cut by it, and says so in many ways
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	r.awaitReturn(ctx)
	return found, nil
}

// awaitReturn waits until as many messages are ready as were read.
func (r *audit) awaitReturn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, auditReturn)
	defer cancel()
	tick := time.NewTicker(auditPoll)
	defer tick.Stop()
	for {
		ready, err := r.ready(ctx)
		if err != nil || int64(ready) >= r.read.Load() {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// audit is one reading of several queues over one connection. Its fields are owned by the goroutine that runs it.
type audit struct {
	admin   *Admin
	conn    *connection
	queues  []*auditQueue
	readers []*auditReader
	read    atomic.Int64
}

// auditQueue is what was found in one queue.
type auditQueue struct {
	name    string
	current *auditReader // the one that still has room
	mu      sync.Mutex
	lying   []Lying // guarded by mu
}

// auditReader is one channel with one consumer, which takes up to maxPrefetch messages and holds them.
type auditReader struct {
	channel *amqp.Channel
	tag     string
	taken   atomic.Int64
	done    chan struct{}
}

// run reads until nothing is left, stops the consumers, looks again, and gives everything back.
func (r *audit) run(ctx context.Context) (map[string][]Lying, error) {
	for {
		if err := r.readUntilQuiet(ctx); err != nil {
			return nil, err
		}
		if err := r.stopReaders(); err != nil {
			return nil, err
		}
		ready, err := r.ready(ctx)
		if err != nil {
			return nil, err
		}
		if ready == 0 {
			break
		}
	}
	return r.found(), r.giveBack()
}

func (r *audit) readUntilQuiet(ctx context.Context) error {
	tick := time.NewTicker(auditPoll)
	defer tick.Stop()
	before, quiet := int64(-1), 0
	for quiet < auditQuiet {
		if err := r.makeRoom(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		ready, err := r.ready(ctx)
		if err != nil {
			return err
		}
		if now := r.read.Load(); ready == 0 && now == before {
			quiet++
		} else {
			before, quiet = now, 0
		}
	}
	return nil
}

// makeRoom sees to it that every queue has a consumer that can take more.
func (r *audit) makeRoom() error {
	for _, q := range r.queues {
		if q.current != nil && q.current.taken.Load() < maxPrefetch {
			continue
		}
		if err := r.addReader(q); err != nil {
			return channelError(fmt.Sprintf("read queue %q", q.name), err)
		}
	}
	return nil
}

func (r *audit) addReader(q *auditQueue) error {
	channel, err := r.conn.Channel()
	if err != nil {
		return err
	}
	if err := channel.Qos(maxPrefetch, 0, false); err != nil {
		return err
	}
	reader := &auditReader{channel: channel, tag: fmt.Sprintf("audit-%d", len(r.readers)), done: make(chan struct{})}
	deliveries, err := channel.Consume(q.name, reader.tag, false, false, false, false, nil)
	if err != nil {
		return err
	}
	q.current = reader
	r.readers = append(r.readers, reader)
	go r.take(q, reader, deliveries)
	return nil
}

func (r *audit) take(q *auditQueue, reader *auditReader, deliveries <-chan amqp.Delivery) {
	defer close(reader.done)
	run := "" // most messages are of one run: its id is kept once
	for d := range deliveries {
		h := envelope.ParseHeaders(d.Headers)
		if h.Run != run {
			run = h.Run
		}
		q.mu.Lock()
		q.lying = append(q.lying, Lying{Seq: h.Seq, Instance: h.Instance, Run: run, MessageID: d.MessageId, SentAt: h.SentAt})
		q.mu.Unlock()
		reader.taken.Add(1)
		r.read.Add(1)
	}
}

// ready returns how many messages are ready in all queues.
func (r *audit) ready(ctx context.Context) (int, error) {
	total := 0
	for _, q := range r.queues {
		depth, err := r.admin.Depth(ctx, q.name)
		if err != nil {
			return 0, err
		}
		total += depth.Ready
	}
	return total, nil
}

// stopReaders cancels the consumers and waits for what was in flight to them. The channels stay open and hold.
func (r *audit) stopReaders() error {
	for _, q := range r.queues {
		q.current = nil
	}
	for _, reader := range r.readers {
		select {
		case <-reader.done: // in an earlier round, or lost: the channel says which
			if reader.channel.IsClosed() {
				return fmt.Errorf("a reading channel ended: %w", broker.ErrClosed)
			}
			continue
		default:
		}
		if err := reader.channel.Cancel(reader.tag, false); err != nil {
			return channelError("stop reading", err)
		}
		<-reader.done
	}
	return nil
}

func (r *audit) found() map[string][]Lying {
	found := make(map[string][]Lying, len(r.queues))
	for _, q := range r.queues {
		q.mu.Lock()
		found[q.name] = q.lying
		q.mu.Unlock()
	}
	return found
}

// giveBack returns what is held by basic.nack, which RabbitMQ 4.3 does not count as a failed delivery, where the loss of
// the channel would.
func (r *audit) giveBack() error {
	for _, reader := range r.readers {
		if reader.taken.Load() == 0 {
			continue
		}
		if err := reader.channel.Nack(0, true, true); err != nil { // tag 0 with multiple is all that the channel holds
			return channelError("give messages back", err)
		}
	}
	return nil
}

// wait returns when the readers have ended; the connection must be closed.
func (r *audit) wait() {
	for _, reader := range r.readers {
		<-reader.done
	}
}
