package metrics_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"spillway/internal/metrics"
)

// serve starts a server on addr, on any free port when addr is empty, and closes it with the test.
func serve(t *testing.T, g prometheus.Gatherer, addr string) *metrics.Server {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	s, err := metrics.Serve(t.Context(), g, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// request asks for a path over a connection of its own and returns status and body.
func request(t *testing.T, s *metrics.Server, path string) (int, string) {
	t.Helper()
	status, body, err := get(t.Context(), s, path)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

func get(ctx context.Context, s *metrics.Server, path string) (status int, body string, err error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+path, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(ask)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func scrape(t *testing.T, s *metrics.Server) string {
	t.Helper()
	status, body := request(t, s, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	return body
}

func contains(text, part string) bool { return strings.Contains(text, part) }

func TestAScrapeShowsTheMetricsAndIsCounted(t *testing.T) {
	t.Parallel()
	m, reg := setup(t)
	m.SetInFlight(42)
	s := serve(t, reg, "")
	if text := scrape(t, s); !contains(text, `spillway_in_flight_messages{profile="steady",run_id="run-1"} 42`) {
		t.Errorf("the scrape lacks the gauge:\n%s", text)
	}
	if status, _ := request(t, s, "/"); status != http.StatusNotFound {
		t.Errorf("another path has status %d, want 404", status)
	}
	if got := s.Scrapes(); got != 1 {
		t.Errorf("%d scrapes, want 1", got)
	}
}

func TestATakenPortMovesOn(t *testing.T) {
	t.Parallel()
	first := serve(t, prometheus.NewRegistry(), "")
	second := serve(t, prometheus.NewRegistry(), first.Addr())
	a, b := netip.MustParseAddrPort(first.Addr()), netip.MustParseAddrPort(second.Addr())
	if a.Port() == b.Port() || !b.Addr().IsLoopback() {
		t.Errorf("the second is at %s, the first at %s", b, a)
	}
}

func TestWhenEveryPortNearIsTakenAnyWillDo(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	last, err := config.Listen(t.Context(), "tcp", "127.0.0.1:65535")
	if err == nil {
		defer func() { _ = last.Close() }()
	}
	s := serve(t, prometheus.NewRegistry(), "127.0.0.1:65535")
	if got := netip.MustParseAddrPort(s.Addr()).Port(); got == 65535 || got == 0 {
		t.Errorf("served on port %d, want another", got)
	}
}

func TestAddressesThatCannotBeServed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, addr string
		loopback   bool // refused for another reason than not being loopback
	}{
		{"every interface", "0.0.0.0:0", false},
		{"no host is every interface", ":9464", false},
		{"an address of another machine", "192.0.2.1:9464", false},
		{"a name that is not localhost", "example.test:9464", false},
		{"no port", "127.0.0.1", true},
		{"a port that is no number", "127.0.0.1:http", true},
		{"a port too high", "127.0.0.1:65536", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, err := metrics.Serve(t.Context(), prometheus.NewRegistry(), row.addr)
			if err == nil {
				_ = s.Close(t.Context())
				t.Fatalf("%s is served", row.addr)
			}
			if errors.Is(err, metrics.ErrNotLoopback) == row.loopback {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheUsualAddressIsOnLoopback(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"localhost:0", metrics.DefaultAddr} {
		if s := serve(t, prometheus.NewRegistry(), addr); !netip.MustParseAddrPort(s.Addr()).Addr().IsLoopback() {
			t.Errorf("%s became %s", addr, s.Addr())
		}
	}
	s, err := metrics.Serve(t.Context(), prometheus.NewRegistry(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if !netip.MustParseAddrPort(s.Addr()).Addr().IsLoopback() {
		t.Errorf("the default became %s", s.Addr())
	}
}

func TestTheLastScrapeIsOneThatBeganAfterTheCall(t *testing.T) {
	t.Parallel()
	s := serve(t, prometheus.NewRegistry(), "")
	scrape(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitScrape(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("an earlier scrape was taken for the last: error %v, want %v", err, context.Canceled)
	}
	done := make(chan error, 1)
	go func() { done <- s.WaitScrape(t.Context()) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			scrape(t, s) // the waiter may not have begun to wait yet, so one scrape may be too early
		}
	}
}

// held is a gatherer that waits in the middle of a scrape.
type held struct{ entered, leave chan struct{} }

func (h held) gather() (out []*dto.MetricFamily, err error) {
	h.entered <- struct{}{}
	<-h.leave
	return nil, nil
}

func TestARefusedScrapeIsNotCounted(t *testing.T) {
	t.Parallel()
	s := serve(t, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, io.ErrUnexpectedEOF }), "")
	if status, _ := request(t, s, "/metrics"); status != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", status)
	}
	if got := s.Scrapes(); got != 0 {
		t.Errorf("%d scrapes, want 0", got)
	}
}

func TestCloseCutsAScrapeOffThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	h := held{entered: make(chan struct{}), leave: make(chan struct{})}
	s, err := metrics.Serve(t.Context(), prometheus.GathererFunc(h.gather), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, _, err := get(t.Context(), s, "/metrics")
		failed <- err
	}()
	<-h.entered
	bound, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(bound); !errors.Is(err, context.Canceled) {
		t.Errorf("close: error %v, want %v", err, context.Canceled)
	}
	if err := <-failed; err == nil {
		t.Error("the scrape was answered after the cut")
	}
	h.leave <- struct{}{}
}
