package rabbit

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker"
)

// Oldest RabbitMQ with at-least-once dead-lettering and message TTL on quorum queues.
const (
	oldestMajor = 3
	oldestMinor = 10
)

const productRabbitMQ = "RabbitMQ"

// Server returns what the broker says it is, from the properties of a connection. A RabbitMQ below 3.10 is returned
// together with ErrTooOld.
func (d *Driver) Server(ctx context.Context) (product, version string, err error) {
	c, err := d.dial(ctx, "spillway preflight")
	if err != nil {
		return "", "", err
	}
	product, version = property(c.Properties, "product"), property(c.Properties, "version")
	if err := c.close(ctx); err != nil {
		return product, version, err
	}
	return product, version, checkVersion(product, version, c.at)
}

func property(t amqp.Table, key string) string {
	s, _ := t[key].(string)
	return s
}

func checkVersion(product, version string, at endpoint) error {
	major, minor, ok := MajorMinor(version)
	if product != productRabbitMQ || !ok {
		return nil // nothing is known of other brokers' numbers
	}
	if major > oldestMajor || major == oldestMajor && minor >= oldestMinor {
		return nil
	}
	return fmt.Errorf("%w: %s is RabbitMQ %s, and at-least-once dead-lettering needs %d.%d or later: upgrade it, or give another address",
		broker.ErrTooOld, at, version, oldestMajor, oldestMinor)
}

// MajorMinor reads the first two numbers of a version.
func MajorMinor(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(parts[1])
	return major, minor, err == nil
}
