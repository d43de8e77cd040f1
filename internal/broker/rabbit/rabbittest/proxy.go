package rabbittest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"spillway/internal/broker/rabbit"
)

// Proxy stands between a driver and the real broker, so that a test can break their connections at a moment of its choice.
type Proxy struct {
	// Driver reaches the test's virtual host through the proxy.
	Driver *rabbit.Driver

	listener net.Listener
	backend  string
	serving  sync.WaitGroup

	mu      sync.Mutex // guards all below
	conns   []net.Conn
	opened  int
	stalled bool
	moved   *sync.Cond // signals a change of stalled
}

// Proxy starts a proxy before the broker, which ends with the test.
func (b *Broker) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	at, err := url.Parse(b.uri)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{backend: at.Host}
	p.moved = sync.NewCond(&p.mu)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		tb.Fatal(err)
	}
	at.Host = p.listener.Addr().String()
	driver, err := rabbit.New(rabbit.Config{URIs: []string{at.String()}})
	if err != nil {
		tb.Fatal(err)
	}
	p.Driver = driver.WithVhost(b.Driver.Vhost())
	p.serving.Go(p.serve)
	tb.Cleanup(func() {
		_ = p.listener.Close()
		p.Stall(false)
		p.Cut()
		p.serving.Wait()
	})
	return p
}

// Cut closes every connection of this moment; new ones are let through. It returns how many were opened so far.
func (p *Proxy) Cut() (opened int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	return p.opened
}

// Stall makes the proxy read nothing more from its clients, as a broker under a memory alarm does; answers still come.
func (p *Proxy) Stall(stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = stalled
	p.moved.Broadcast()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.opened++
		p.mu.Unlock()
		p.serving.Go(func() { p.forward(server, client) })
		p.serving.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
	}
}

// forward copies from the client, but while the proxy is stalled.
func (p *Proxy) forward(server, client net.Conn) {
	defer func() { _ = server.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		p.await()
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		p.await()
		if _, err := server.Write(buffer[:n]); err != nil {
			_ = client.Close()
			return
		}
	}
}

func (p *Proxy) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled {
		p.moved.Wait()
	}
}
