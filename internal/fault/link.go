package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Link is the network between us and one server: a proxy of our own on the loopback before each of its addresses, which
// passes everything on as it is until it is made Worse. Connections go through it for the whole run, so that the fault's
// window is compared with the same way. It is safe for concurrent use; Close it after the last connection.
type Link struct {
	server *toxiproxy.ApiServer // only holds what its proxies share; it listens nowhere

	mu      sync.Mutex                  // guards all below
	proxies map[string]*toxiproxy.Proxy // by the address that they stand before
	trouble map[string]Worse            // what holds now, by name, also for proxies to come
}

// quiet keeps the proxies' toxics from writing to standard error: some of them log to the package's own logger, whatever the proxy
// was given. Nobody else here logs with it.
var quiet = sync.OnceFunc(func() { zerolog.SetGlobalLevel(zerolog.Disabled) })

// NewLink returns a link without trouble. Nothing listens before the first Dial.
func NewLink() *Link {
	quiet()
	return &Link{
		server:  toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop()),
		proxies: map[string]*toxiproxy.Proxy{}, trouble: map[string]Worse{},
	}
}

// Worse is what a network can do to a connection, in the way from the server to us, or for Reset in both.
type Worse struct {
	Delay     time.Duration // every answer is this late
	Jitter    time.Duration // give or take this, evenly
	Bandwidth int64         // bytes per second of each connection, in both ways; 0 is no bound
	Reset     bool          // connections are closed as soon as something travels on them
}

// Dial connects to an address through its proxy.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	proxy, err := l.before(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, proxy.Listen)
}

// before returns the proxy of an address, made when it is first asked for.
func (l *Link) before(address string) (*toxiproxy.Proxy, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if proxy, there := l.proxies[address]; there {
		return proxy, nil
	}
	proxy := toxiproxy.NewProxy(l.server, address, "127.0.0.1:0", address)
	if err := proxy.Start(); err != nil {
		return nil, fmt.Errorf("proxy before %s: %w", address, err)
	}
	l.proxies[address] = proxy
	for name, w := range l.trouble {
		if err := w.add(proxy, name); err != nil {
			return nil, err
		}
	}
	return proxy, nil
}

// Hold makes the link worse under a name, until the release. Troubles of several names add up.
func (l *Link) Hold(ctx context.Context, name string, w Worse) (func(context.Context) error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble[name] = w
	for _, proxy := range l.proxies {
		if err := w.add(proxy, name); err != nil {
			delete(l.trouble, name)
			w.remove(context.WithoutCancel(ctx), l.proxies, name)
			return nil, err
		}
	}
	return func(ctx context.Context) error { return l.release(ctx, name) }, nil
}

func (l *Link) release(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.trouble[name]
	delete(l.trouble, name)
	w.remove(ctx, l.proxies, name)
	return ctx.Err()
}

// Close ends every connection and stops listening.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, proxy := range l.proxies {
		proxy.Stop()
	}
	clear(l.proxies)
}

// toxic is one disturbance in the words of the library.
type toxic struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Attributes map[string]int64 `json:"attributes"`
}

// kibibyte: the library counts bandwidth in units of it.
const kibibyte = 1024

// toxics returns what makes up the disturbance.
func (w Worse) toxics(name string) []toxic {
	var all []toxic
	if w.Delay > 0 || w.Jitter > 0 {
		latency := map[string]int64{"latency": w.Delay.Milliseconds(), "jitter": w.Jitter.Milliseconds()}
		all = append(all, toxic{name + " latency", "latency", "downstream", latency})
	}
	for _, stream := range []string{"upstream", "downstream"} {
		if w.Bandwidth > 0 {
			rate := map[string]int64{"rate": max(1, w.Bandwidth/kibibyte)}
			all = append(all, toxic{name + " bandwidth " + stream, "bandwidth", stream, rate})
		}
		if w.Reset {
			all = append(all, toxic{name + " reset " + stream, "reset_peer", stream, map[string]int64{"timeout": 0}})
		}
	}
	return all
}

func (w Worse) add(proxy *toxiproxy.Proxy, name string) error {
	for _, t := range w.toxics(name) {
		text, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("proxy before %s: %w", proxy.Upstream, err)
		}
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			return fmt.Errorf("proxy before %s: %s: %w", proxy.Upstream, t.Type, err)
		}
	}
	return nil
}

// remove takes the disturbance away. What is not there is no error: an addition may have failed half-way.
func (w Worse) remove(ctx context.Context, proxies map[string]*toxiproxy.Proxy, name string) {
	for _, proxy := range proxies {
		for _, t := range w.toxics(name) {
			_ = proxy.Toxics.RemoveToxic(ctx, t.Name) // its only error is that it is not there
		}
	}
}
