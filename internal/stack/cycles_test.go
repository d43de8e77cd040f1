//go:build linux

package stack

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// cycles is how often a service is ended and brought back; more are for the hunt after a rare failure.
var cycles = flag.Int("cycles", 2, "stops and starts of each service under open connections")

// Servers that end first leave their ends of connections behind, in TIME_WAIT and FIN_WAIT, on ports that they need
// again. Nor may a reserved port's quiet socket, or a client that dials without pause, keep them from it.
func TestEveryServiceComesBackUnderOpenConnections(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for _, name := range AllServices() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cycle := range *cycles {
				cycleOnce(t, s, name, cycle)
			}
		})
	}
}

// cycleOnce ends a service under its clients, by a stop and by a kill in turn, and brings it back.
func cycleOnce(t *testing.T, s *Stack, name string, cycle int) {
	t.Helper()
	closeClients := openClients(t, s, name)
	stopDialling := dialAgainAndAgain(t, clientPorts(s.services[name]))
	var err error
	began := time.Now()
	if cycle%2 == 0 {
		err = s.Stop(t.Context(), name)
	} else {
		err = s.Signal(t.Context(), name, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("cycle %d: end: %v", cycle, err)
	}
	ended := time.Since(began)
	left := lingering(t, s.services[name].ports.ports)
	if left == 0 {
		t.Errorf("cycle %d: no connection outlived the server, so nothing was tried", cycle)
	}
	if err := s.Start(t.Context(), name); err != nil {
		t.Fatalf("cycle %d, with %d connections left behind: %v", cycle, left, err)
	}
	t.Logf("cycle %d: ended in %v, back after %v, with %d connections left behind", cycle, ended, time.Since(began), left)
	stopDialling()
	closeClients()
}

// openClients holds some connections to every port that clients of the service use.
func openClients(t *testing.T, s *Stack, name string) func() {
	t.Helper()
	const each = 5
	var open []io.Closer
	a := s.Addresses()
	for range each {
		switch name {
		case RabbitMQ:
			connection, err := amqp.Dial(a.AMQP)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, connection, keepAlive(t, a.Management+"/api/overview"))
		case PostgreSQL:
			connection := connect(t, a.Postgres)
			open = append(open, closer(func() error { return connection.Close(context.Background()) }))
		default:
			open = append(open, keepAlive(t, a.Prometheus+"/-/ready"))
		}
	}
	return func() {
		for _, c := range open {
			_ = c.Close() // its server has been away
		}
	}
}

type closer func() error

func (c closer) Close() error { return c() }

// keepAlive asks once and keeps the connection.
func keepAlive(t *testing.T, address string) io.Closer {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp4", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	request := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}
	if err := request.Write(connection); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return connection
}

// dialAgainAndAgain is a crowd of clients that lost their server. How a dial fails is no matter.
func dialAgainAndAgain(t *testing.T, ports []int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, port := range ports {
				if c, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
					c.Close()
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

// clientPorts are those that clients know; the others are between the server and its helpers.
func clientPorts(s *service) []int {
	return s.ports.ports[:min(len(s.ports.ports), rabbitDistribution)]
}

// lingering counts the ends of connections on the servers' ports that the kernel still holds.
func lingering(t *testing.T, ports []int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		for _, port := range ports {
			if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				count++
			}
		}
	}
	return count
}
