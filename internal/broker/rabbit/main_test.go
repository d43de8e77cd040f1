package rabbit

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/topology"
)

// patience bounds every wait of a test; nothing here takes that long unless it hangs.
const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is what an integration test gets: a virtual host of its own on the real broker.
type bundle struct {
	driver     *Driver
	management *Management
	vhost      string
}

var vhostNumber atomic.Int64

// setup makes a virtual host and removes it after the test.
func setup(t *testing.T) *bundle {
	t.Helper()
	uri, management := environment(t)
	driver, err := New(Config{URIs: []string{uri}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewManagement(ManagementConfig{URL: management, Username: driver.Username(), Password: driver.endpoints[0].password})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{management: m, vhost: fmt.Sprintf("spillway-test-rabbit-%d-%d", os.Getpid(), vhostNumber.Add(1))}
	if err := m.CreateVhost(deadline(t), b.vhost, driver.Username()); err != nil {
		t.Fatal(err)
	}
	b.driver = driver.WithVhost(b.vhost)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := m.DeleteVhost(ctx, b.vhost); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return b
}

func environment(t *testing.T) (uri, management string) {
	t.Helper()
	uri, management = os.Getenv("SPILLWAY_TEST_URI"), os.Getenv("SPILLWAY_TEST_MANAGEMENT")
	if uri == "" || management == "" {
		t.Fatal("SPILLWAY_TEST_URI and SPILLWAY_TEST_MANAGEMENT are not set: run make test, which starts the servers")
	}
	return uri, management
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// plan is a default topology with short delays, for the version of the broker under test.
func (b *bundle) plan(t *testing.T, change func(*topology.Settings)) *topology.Plan {
	t.Helper()
	overview, err := b.management.Overview(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	major, _, _ := MajorMinor(overview.Version)
	s := topology.Settings{
		DeadLetterStrategy: topology.AtLeastOnce,
		DeliveryLimit:      8,
		DeliveryLimitTo:    topology.ToParking,
		ReturnVia:          topology.ViaQueue,
		ParkVia:            topology.ViaPublish,
		Tiers:              []time.Duration{200 * time.Millisecond, time.Second},
		Jitter:             true,
		TimeScale:          1,
		Declare:            topology.DeclareArguments,
		BrokerMajor:        major,
	}
	if change != nil {
		change(&s)
	}
	plan, err := topology.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// message returns a small message with an identity.
func message(exchange, key string, seq int64) *broker.Message {
	return &broker.Message{
		Exchange:    exchange,
		RoutingKey:  key,
		MessageID:   fmt.Sprintf("id-%d", seq),
		Type:        envelope.TypeOrderCreated,
		ContentType: "application/json",
		Timestamp:   time.Now(),
		Headers:     envelope.Headers{Run: "r", Seq: seq, SentAt: 1},
		Body:        []byte(strings.Repeat("x", 64)),
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(limit) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
