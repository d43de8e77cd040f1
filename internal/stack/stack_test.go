//go:build linux

package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

// start brings a stack up with the built binary and closes it with the test.
func start(t *testing.T, o Options) *Stack {
	t.Helper()
	needRoot(t)
	o.Executable = executable
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.data.host()); !os.IsNotExist(err) {
			t.Errorf("data folder after Close: %v, want it gone", err)
		}
	})
	return s
}

// needRoot fails, and does not skip, where the servers are missing: absence must not pass for success.
func needRoot(t *testing.T) *Root {
	t.Helper()
	root, err := FindRoot("")
	if err != nil {
		t.Fatalf("%v: run make test, which makes one", err)
	}
	return root
}

func connect(t *testing.T, uri string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close(context.Background()) })
	return connection
}

func TestAllServersAreUpWhenStartReturns(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for service, version := range s.Versions() {
		if got, err := probe(t.Context(), service, s.Addresses()); err != nil || got != version || version == "" {
			t.Errorf("%s answers version %q, %v; the stack says %q", service, got, err, version)
		}
	}
	t.Run("listening on loopback alone", func(t *testing.T) {
		for _, service := range s.services {
			for _, address := range listening(t, descendants(service.status().PID)) {
				if !address.IP.IsLoopback() {
					t.Errorf("%s listens on %v", service.server.name(), address)
				}
			}
		}
	})
	t.Run("with neither root rights nor secrets in arguments", func(t *testing.T) {
		for _, service := range s.services {
			checkProcesses(t, s, descendants(service.status().PID))
		}
	})
	t.Run("with RabbitMQ among Prometheus's targets", func(t *testing.T) {
		eventually(t, 10*time.Second, func() bool {
			var up struct {
				Data struct {
					Result []struct {
						Value [2]any `json:"value"`
					} `json:"result"`
				} `json:"data"`
			}
			err := getJSON(t.Context(), s.Addresses().Prometheus+"/api/v1/query?query=up%7Bservice%3D%22rabbitmq%22%7D", &up)
			return err == nil && len(up.Data.Result) == 1 && up.Data.Result[0].Value[1] == "1"
		})
	})
	t.Run("with quorum queues that report every second", func(t *testing.T) {
		declareQuorum(t, openChannel(t, s), "seen")
		// With the default tick of 5 s a new queue's counts appear after 8 s and more; the bound tells the two apart.
		eventually(t, 7*time.Second, func() bool {
			var queue struct {
				Messages *int `json:"messages"`
			}
			err := getJSON(t.Context(), s.Addresses().Management+"/api/queues/%2F/seen", &queue)
			return err == nil && queue.Messages != nil
		})
	})
}

func declareQuorum(t *testing.T, channel *amqp.Channel, name string) {
	t.Helper()
	if _, err := channel.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
}

// eventually asks until the condition holds; the bound is there for a broken build only.
func eventually(t *testing.T, bound time.Duration, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("did not come about within %v", bound)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// listening returns the addresses of the processes' listening TCP sockets, by way of the kernel's table.
func listening(t *testing.T, pids []int) []*net.TCPAddr {
	t.Helper()
	inodes := map[string]bool{}
	for _, pid := range pids {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil {
				inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
			}
		}
	}
	var found []*net.TCPAddr
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == "0A" && inodes[fields[9]] {
				found = append(found, tableAddress(t, fields[1]))
			}
		}
	}
	if len(found) == 0 {
		t.Errorf("no listening socket found of processes %v", pids)
	}
	return found
}

// tableAddress decodes the kernel's notation: 32-bit words in host order, a colon, the port.
func tableAddress(t *testing.T, text string) *net.TCPAddr {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	ip := make(net.IP, len(host)/2)
	for i := range ip {
		if _, err := fmt.Sscanf(host[2*i:2*i+2], "%x", &ip[i^3]); err != nil {
			t.Fatal(err)
		}
	}
	a := &net.TCPAddr{IP: ip}
	if _, err := fmt.Sscanf(port, "%x", &a.Port); err != nil {
		t.Fatal(err)
	}
	return a
}

func checkProcesses(t *testing.T, s *Stack, pids []int) {
	t.Helper()
	secrets := []string{s.services[RabbitMQ].server.(*rabbitmq).cluster.password, s.services[PostgreSQL].server.(*postgres).password}
	for _, pid := range pids {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			continue // ended meanwhile
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if info.Sys().(*syscall.Stat_t).Uid == 0 {
			t.Errorf("process %d runs as root: %q", pid, line)
		}
		for _, secret := range secrets {
			if strings.Contains(string(line), secret) {
				t.Errorf("process %d shows a password: %q", pid, line)
			}
		}
	}
}

func TestPostgresKeepsDataAndAddress(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{PostgreSQL}})
	uri := s.Addresses().Postgres
	if _, err := connect(t, uri).Exec(t.Context(), "create table kept as select 42 as v"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		end  func() error
	}{
		{"after an orderly stop", func() error { return s.Stop(t.Context(), PostgreSQL) }},
		{"after SIGKILL", func() error { return s.Signal(t.Context(), PostgreSQL, syscall.SIGKILL) }},
	} {
		if err := row.end(); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if _, err := pgx.Connect(t.Context(), uri); err == nil {
			t.Fatalf("%s the server takes logins", row.name)
		}
		if err := s.Start(t.Context(), PostgreSQL); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		var got int
		if err := connect(t, uri).QueryRow(t.Context(), "select v from kept").Scan(&got); err != nil || got != 42 {
			t.Errorf("%s the row holds %d, %v; want 42", row.name, got, err)
		}
	}
}

func TestPostgresIsDurableByDefault(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{PostgreSQL}})
	connection := connect(t, s.Addresses().Postgres)
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "200", "password_encryption": "scram-sha-256",
	} {
		var got string
		if err := connection.QueryRow(t.Context(), "select current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", setting, got, err, want)
		}
	}
}

func TestAStoppedProcessAnswersAgainAfterContinue(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{Prometheus}})
	if err := s.Signal(t.Context(), Prometheus, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, s.Addresses().Prometheus+"/-/ready"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stopped server answers: %v", err)
	}
	if err := s.Signal(t.Context(), Prometheus, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t.Context(), s.Addresses().Prometheus+"/-/ready"); err != nil {
		t.Errorf("a continued server does not answer: %v", err)
	}
}

func TestRabbitMQKeepsConfirmedMessagesOverAKill(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{RabbitMQ}})
	channel := openChannel(t, s)
	declareQuorum(t, channel, "kept")
	// RabbitMQ 4.3 writes a new queue's registration some seconds late. Killed before that, it comes back with an empty
	// queue, confirmed messages or not (ran, 4.3.6).
	eventually(t, 20*time.Second, func() bool {
		registry, _ := filepath.Glob(s.data.host(RabbitMQ, "data", "*", "quorum", "*", "names.dets"))
		text, err := os.ReadFile(strings.Join(registry, ""))
		return err == nil && strings.Contains(string(text), "kept")
	})
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirmation, err := channel.PublishWithDeferredConfirm("", "kept", true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("x")})
	if err != nil || !confirmation.Wait() {
		t.Fatalf("publish: not confirmed, %v", err)
	}
	if err := s.Signal(t.Context(), RabbitMQ, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), RabbitMQ); err != nil {
		t.Fatal(err)
	}
	channel = openChannel(t, s)
	eventually(t, 20*time.Second, func() bool { // the queue's member may still be recovering
		_, ok, err := channel.Get("kept", true)
		if err != nil {
			channel = openChannel(t, s)
		}
		return ok && err == nil
	})
}

func openChannel(t *testing.T, s *Stack) *amqp.Channel {
	t.Helper()
	connection, err := amqp.Dial(s.Addresses().AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

func TestUnknownServicesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Services: []string{Prometheus}})
	if err := s.Stop(t.Context(), PostgreSQL); !errors.Is(err, ErrUnknownService) {
		t.Errorf("stopping what the stack does not hold gives %v, want %v", err, ErrUnknownService)
	}
	_, err := Start(t.Context(), Options{Services: []string{"kafka"}, Executable: executable})
	if !errors.Is(err, ErrUnknownService) {
		t.Errorf("starting what nobody knows gives %v, want %v", err, ErrUnknownService)
	}
}

func TestAServerThatIsNotReadyInTimeLeavesNothing(t *testing.T) {
	t.Parallel()
	needRoot(t)
	_, err := Start(t.Context(), Options{Services: []string{Prometheus}, Executable: executable, ReadyTimeout: 1})
	if !errors.Is(err, ErrNotReady) {
		t.Fatalf("a server that had a nanosecond gives %v, want %v", err, ErrNotReady)
	}
	if !strings.Contains(err.Error(), "the end of its log") {
		t.Errorf("the error shows no log: %v", err)
	}
}

func TestALostPortIsReplaced(t *testing.T) {
	t.Parallel()
	held, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s := start(t, Options{Services: []string{PostgreSQL}})
	if err := s.Stop(t.Context(), PostgreSQL); err != nil {
		t.Fatal(err)
	}
	service, draws := s.services[PostgreSQL], 0
	service.reserve = func(n int) (*reservation, error) {
		if draws++; draws == 1 {
			return &reservation{ports: []int{held.Addr().(*net.TCPAddr).Port}}, nil
		}
		return reservePorts(n)
	}
	if err := service.first(t.Context()); err != nil || draws != 2 {
		t.Errorf("with the first port taken: %v after %d draws, want success after 2", err, draws)
	}
}
