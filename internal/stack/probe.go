package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

// epmdService is the name server of a cluster's nodes, which is no service of its own to anybody outside.
const epmdService = "epmd"

// probe asks a service once whether it serves, and returns its version.
func probe(ctx context.Context, service string, a Addresses) (string, error) {
	switch {
	case isNode(service):
		return probeRabbitMQ(ctx, a)
	case service == PostgreSQL:
		return probePostgres(ctx, a)
	case service == Prometheus:
		return probePrometheus(ctx, a)
	case service == epmdService: // speaks only when it is asked something, and has no version
		return "", nil
	default:
		return "", fmt.Errorf("%w: %q", ErrUnknownService, service)
	}
}

// probeRabbitMQ opens an AMQP connection, asks whether the node has finished booting, and reads the overview. A node
// takes logins before its plugins have started; asked then, the overview fails inside and fills the log with a crash
// report.
func probeRabbitMQ(ctx context.Context, a Addresses) (string, error) {
	connection, err := amqp.DialConfig(a.AMQP, amqp.Config{Dial: amqp.DefaultDial(probeTimeout)})
	if err != nil {
		return "", fmt.Errorf("AMQP: %w", err)
	}
	if err := connection.Close(); err != nil {
		return "", fmt.Errorf("AMQP: %w", err)
	}
	// RabbitMQ before 4.1 does not know this check; there the overview alone must do.
	if _, err := get(ctx, a.Management+"/api/health/checks/is-in-service"); err != nil && !errors.Is(err, errNotFound) {
		return "", fmt.Errorf("management: %w", err)
	}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := getJSON(ctx, a.Management+"/api/overview", &overview); err != nil {
		return "", fmt.Errorf("management: %w", err)
	}
	return overview.Version, nil
}

// probePostgres logs in and asks.
func probePostgres(ctx context.Context, a Addresses) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	connection, err := pgx.Connect(ctx, a.Postgres)
	if err != nil {
		return "", err
	}
	defer connection.Close(ctx)
	var version string
	if err := connection.QueryRow(ctx, "select split_part(current_setting('server_version'), ' ', 1)").Scan(&version); err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	return version, nil
}

func probePrometheus(ctx context.Context, a Addresses) (string, error) {
	if _, err := get(ctx, a.Prometheus+"/-/ready"); err != nil {
		return "", err
	}
	var build struct {
		Data struct {
			Version string `json:"version"`
		} `json:"data"`
	}
	err := getJSON(ctx, a.Prometheus+"/api/v1/status/buildinfo", &build)
	return build.Data.Version, err
}
