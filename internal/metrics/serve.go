package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// DefaultAddr is where metrics are served when nothing else is asked for.
const DefaultAddr = "127.0.0.1:9464"

const (
	// portsTried is how many ports are tried, upwards from the one asked for, before the system picks one: as many
	// runs as a person starts at once, and then some.
	portsTried = 20
	// headerTimeout bounds the time a scraper takes to send its request, so that idle connections do not pile up.
	headerTimeout = 5 * time.Second
	// scrapesAtOnce bounds the scrapes served at the same time: Prometheus and a person or two.
	scrapesAtOnce = 4
)

// ErrNotLoopback is returned by Serve for an address that other machines could reach: metrics have no login.
var ErrNotLoopback = errors.New("metrics are served on loopback only")

// Server serves /metrics. It is safe for concurrent use; call Serve, and Close when done.
type Server struct {
	listener net.Listener
	http     *http.Server
	stopped  chan struct{} // closed when the accept loop has ended

	mu       sync.Mutex // guards the next four
	begun    int64      // scrapes begun
	finished int64      // scrapes answered in full
	latest   int64      // the highest number, counted at the beginning, of a scrape answered in full
	changed  chan struct{}
}

// Serve starts to serve what g gathers under http://addr/metrics and returns at once. addr is host:port of a loopback
// address, DefaultAddr when empty. When the port is taken the next ones are tried, and then any: Addr says which it
// became. ctx bounds the start alone, so that a run that is being stopped is still scraped until Close.
func Serve(ctx context.Context, g prometheus.Gatherer, addr string) (*Server, error) {
	if addr == "" {
		addr = DefaultAddr
	}
	listener, err := listen(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("serve metrics on %s: %w", addr, err)
	}
	s := &Server{listener: listener, stopped: make(chan struct{}), changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.count(promhttp.HandlerFor(g, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtOnce, EnableOpenMetrics: true,
	})))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	go s.accept()
	return s, nil
}

func (s *Server) accept() {
	defer close(s.stopped)
	_ = s.http.Serve(s.listener) // ends with ErrServerClosed; a lost listener shows as scrapes that stop
}

// Addr returns the address that is served, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops serving: scrapes under way are finished, and cut off when ctx ends first.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop serving metrics: %w", err), s.http.Close())
	}
	<-s.stopped
	return err
}

// listen listens on addr, or near it.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := loopback(addr)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	for next := port; port != 0 && next < port+portsTried && next <= 65535; next++ {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(next)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
}

// CheckAddr returns why Serve would refuse an address, nil when it would not; "" is the default address.
func CheckAddr(addr string) error {
	if addr == "" {
		return nil
	}
	_, _, err := loopback(addr)
	return err
}

// loopback splits addr and refuses a host that is not loopback. The name localhost is taken for what it stands for.
func loopback(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, &net.AddrError{Err: "the port is not a number from 0 to 65535", Addr: addr}
	}
	if host == "localhost" {
		return "127.0.0.1", port, nil
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return "", 0, ErrNotLoopback
	}
	return host, port, nil
}
