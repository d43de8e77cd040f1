package fault

import (
	"context"
	"fmt"
	"time"

	"spillway/internal/broker"
	"spillway/internal/stack"
)

// PostgresStop is a real, orderly stop of the database server, as an operator or a failover would do it.
type PostgresStop struct {
	// Control is the stack that the server belongs to; nil when the server was given by address, which we do not stop.
	Control stack.Control
	// Ping tries to use the server.
	Ping func(ctx context.Context) error
	// Failures returns how many attempts failed with a transient error so far.
	Failures func() int64
}

// KindPostgresStop is the kind of PostgresStop.
const KindPostgresStop = "postgres.stop"

// Kind implements Fault.
func (*PostgresStop) Kind() string { return KindPostgresStop }

// Available implements Fault.
func (p *PostgresStop) Available() error {
	if p.Control == nil {
		return fmt.Errorf("%w: the database was given by address, and spillway stops only servers that it started; "+
			"leave --postgres out, or start a stack with `spillway stack up`", ErrUnavailable)
	}
	return nil
}

// Inject implements Fault.
func (p *PostgresStop) Inject(ctx context.Context) error {
	return p.Control.Stop(ctx, stack.PostgreSQL)
}

// pingInterval is how often a healing server is asked: recovery is measured in tenths of a second.
const pingInterval = 50 * time.Millisecond

// Heal implements Fault: it starts the server and returns when a login succeeds.
func (p *PostgresStop) Heal(ctx context.Context) error {
	if err := p.Control.Start(ctx, stack.PostgreSQL); err != nil {
		return err
	}
	for {
		err := p.Ping(ctx)
		if err == nil {
			return nil
		}
		if !broker.Wait(ctx, pingInterval) {
			return err
		}
	}
}

// Marks implements Fault.
func (p *PostgresStop) Marks() []Mark {
	return []Mark{{Name: "transient_failures", Value: float64(p.Failures())}}
}
