// Package rabbittest gives a test a broker of its own: a virtual host on the server that the environment names, with a
// topology declared in it, and removed when the test ends. Only tests import it.
package rabbittest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"spillway/internal/broker/rabbit"
	"spillway/internal/topology"
)

// Environment variables with the addresses of the server that tests use.
const (
	URIVariable        = "SPILLWAY_TEST_URI"
	ManagementVariable = "SPILLWAY_TEST_MANAGEMENT"
)

// Patience bounds every wait of a test; nothing takes that long unless it hangs.
const Patience = 30 * time.Second

// Broker is one test's virtual host.
type Broker struct {
	Driver     *rabbit.Driver // on the virtual host
	Management *rabbit.Management
	Admin      *rabbit.Admin
	Plan       *topology.Plan // declared

	uri string // of the server
}

// New makes a virtual host and declares a topology in it: the default one with two tiers of 200 ms and 1 s without jitter,
// its settings in the arguments, as change (nil for none) leaves it.
func New(tb testing.TB, change func(*topology.Settings)) *Broker {
	tb.Helper()
	b := &Broker{uri: Variable(tb, URIVariable)}
	driver, err := rabbit.New(rabbit.Config{URIs: []string{b.uri}})
	if err != nil {
		tb.Fatal(err)
	}
	vhost := "spillway-test-" + strings.ToLower(rand.Text())
	b.Driver = driver.WithVhost(vhost)
	b.openManagement(tb)
	if err := b.Management.CreateVhost(Context(tb), vhost, driver.Username()); err != nil {
		tb.Fatal(err)
	}
	b.Admin = rabbit.NewAdmin(b.Driver)
	tb.Cleanup(func() { b.remove(tb, vhost) })
	b.declare(tb, change)
	return b
}

// Variable returns a variable of the environment. It fails the test when it is not set: an absent server is not a pass.
func Variable(tb testing.TB, name string) string {
	tb.Helper()
	value := os.Getenv(name)
	if value == "" {
		tb.Fatalf("%s is not set; run make test, which starts the servers that this test needs", name)
	}
	return value
}

// Context returns a context that ends with Patience, or after the test's cleanups.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	tb.Cleanup(cancel)
	return ctx
}

// Eventually waits for a condition of the server, which has no signal to wait on.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for limit := time.Now().Add(Patience); !condition(); {
		if time.Now().After(limit) {
			tb.Fatalf("waited %v in vain: %s", Patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *Broker) openManagement(tb testing.TB) {
	tb.Helper()
	at, err := url.Parse(b.uri)
	if err != nil {
		tb.Fatal(err)
	}
	password, _ := at.User.Password()
	b.Management, err = rabbit.NewManagement(rabbit.ManagementConfig{
		URL: Variable(tb, ManagementVariable), Username: at.User.Username(), Password: password,
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func (b *Broker) remove(tb testing.TB, vhost string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	b.Admin.Close()
	if err := b.Management.DeleteVhost(ctx, vhost); err != nil {
		tb.Error(err)
	}
	b.Management.Close()
}

func (b *Broker) declare(tb testing.TB, change func(*topology.Settings)) {
	tb.Helper()
	overview, err := b.Management.Overview(Context(tb))
	if err != nil {
		tb.Fatal(err)
	}
	major, _, _ := rabbit.MajorMinor(overview.Version)
	s := topology.Settings{
		DeadLetterStrategy: topology.AtLeastOnce, DeliveryLimit: 8, DeliveryLimitTo: topology.ToParking, ReturnVia: topology.ViaQueue,
		ParkVia: topology.ViaPublish, Tiers: []time.Duration{200 * time.Millisecond, time.Second}, TimeScale: 1,
		Declare: topology.DeclareArguments, BrokerMajor: major,
	}
	if change != nil {
		change(&s)
	}
	if b.Plan, err = topology.Build(s); err != nil {
		tb.Fatal(err)
	}
	if err := b.Admin.Declare(Context(tb), b.Plan); err != nil {
		tb.Fatal(err)
	}
}

// Ready returns how many messages are ready in a queue.
func (b *Broker) Ready(tb testing.TB, queue string) int {
	tb.Helper()
	depth, err := b.Admin.Depth(Context(tb), queue)
	if err != nil {
		tb.Fatal(err)
	}
	return depth.Ready
}

// Lying reads what lies in a queue and leaves it there. Nothing may consume the queue.
func (b *Broker) Lying(tb testing.TB, queue string) []rabbit.Lying {
	tb.Helper()
	found, err := b.Admin.ReadAll(Context(tb), []string{queue})
	if err != nil {
		tb.Fatal(err)
	}
	return found[queue]
}

// Tamper runs an operation on a channel of its own, which is in confirm mode.
func (b *Broker) Tamper(tb testing.TB, operation func(*amqp.Channel) error) {
	tb.Helper()
	at, err := url.Parse(b.uri)
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := amqp.DialConfig(at.String(), amqp.Config{Vhost: b.Driver.Vhost()})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(channel.Confirm(false), operation(channel)); err != nil {
		tb.Fatal(err)
	}
}

// Kill closes the connections to the virtual host over the management API, which knows a connection up to 5 s after it was
// opened, and returns when at least one is closed.
func (b *Broker) Kill(tb testing.TB) {
	tb.Helper()
	ctx := Context(tb)
	b.Admin.Close() // its connection would be found first
	Eventually(tb, "a connection is known and closed", func() bool {
		closed, err := b.Management.CloseConnections(ctx, b.Driver.Vhost())
		if err != nil {
			tb.Fatal(err)
		}
		return closed > 0
	})
}
