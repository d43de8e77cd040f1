package crew

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"spillway/internal/broker"
	"spillway/internal/broker/rabbit"
	"spillway/internal/postgres"
	"spillway/workers"
)

// childVariable marks a process as a child; it says nothing else.
const childVariable = "SPILLWAY_WORKER_PROCESS"

// IsChild reports whether this process was started as a child.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// RunChild is the life of a child. It returns its exit code.
func RunChild() int {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// statusEvery is how often a child tells what no event does.
const statusEvery = 500 * time.Millisecond

// closeTimeout bounds the letting go of a connection.
const closeTimeout = 5 * time.Second

// child is one process of workers.
type child struct {
	*reporter
	service *Service
	db      *postgres.DB // nil without a database
	armed   atomic.Pointer[workers.Point]
}

// serve works by the task and the orders from in, until it is told to stop or in ends.
func serve(in io.Reader, out io.Writer) error {
	orders := gob.NewDecoder(in)
	var task Task
	if err := orders.Decode(&task); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	c := &child{reporter: newReporter(out)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := c.prepare(ctx, &task); err != nil {
		return err
	}
	var serving errgroup.Group
	serving.Go(func() error { return c.service.Run(ctx) })
	go c.obey(orders, cancel) // it ends with the process: there is no way to end the reading of a pipe that nobody closes

	over := make(chan struct{})
	var reporting errgroup.Group
	reporting.Go(func() error { c.run(over); return nil })
	reporting.Go(func() error { c.tell(over); return nil })
	err := serving.Wait()
	close(over)
	_ = reporting.Wait()
	return errors.Join(err, c.flush(c.status()))
}

func (c *child) prepare(ctx context.Context, t *Task) error {
	driver, err := rabbit.New(t.Broker)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	in := Surroundings{
		Base: t.Anchor.join(), Driver: driver.WithVhost(t.Vhost), Observer: c, Links: c, Breakers: c, Reached: c.reached,
	}
	if t.Postgres.URI != "" {
		if c.db, err = open(ctx, t.Postgres); err != nil {
			return fmt.Errorf("database: %w", err)
		}
		in.Pool = c.db.Pool()
	}
	c.service, err = NewService(&t.Spec, in)
	return err
}

// databaseTimeout bounds the wait for a database that may be away on purpose: the parent has used it with success before.
const databaseTimeout = 60 * time.Second

func open(ctx context.Context, cfg postgres.Config) (db *postgres.DB, err error) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	for tries := 0; ; tries++ {
		if db, err = postgres.Open(ctx, cfg); err == nil || !broker.Wait(ctx, broker.Reconnect.Delay(tries, rand.Float64())) {
			return db, err
		}
	}
}

// obey carries out orders. The end of them is the end of the parent, and a child alone has no business.
func (c *child) obey(orders *gob.Decoder, end context.CancelFunc) {
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			end()
			return
		}
		switch {
		case o.Stop:
			c.service.Stop()
		case o.Fail != nil:
			c.service.Open(*o.Fail)
		case o.Heal:
			c.service.Close()
		default:
			c.armed.Store(&o.Arm)
		}
	}
}

// reached reports the first delivery that comes to the armed point, and keeps it there: the parent's answer is SIGKILL.
func (c *child) reached(p workers.Point, seq int64) {
	armed := c.armed.Load()
	if armed == nil || *armed != p || !c.armed.CompareAndSwap(armed, nil) {
		return
	}
	c.add(note{Reached: &reached{p, seq}})
	_ = c.flush(nil) // without a parent the process is about to end
	select {}
}

// tell sends the status until done is closed.
func (c *child) tell(done <-chan struct{}) {
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if c.flush(c.status()) != nil {
				return
			}
		}
	}
}

func (c *child) status() *status {
	s := &status{Simulated: c.service.Simulated()}
	if c.db != nil {
		s.Pool = c.db.PoolStats()
	}
	return s
}
