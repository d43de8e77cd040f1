package e2e

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a run and a server, so that a test can cut every connection at once, as a network does. accept, if
// set, makes the server's side of a connection out of the raw one, for TLS.
type proxy struct {
	listener net.Listener
	target   string
	accept   func(net.Conn) (net.Conn, error)

	mu   sync.Mutex // guards open
	open map[net.Conn]bool
}

func newProxy(t *testing.T, target string, accept func(net.Conn) (net.Conn, error)) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, accept: accept, open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		_ = listener.Close() // ends serve
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// before returns a URI with the proxy's address in place of the server's.
func (p *proxy) before(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.address()
	return u.String()
}

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		serving.Go(func() { p.join(conn) })
	}
}

// join copies in both directions until either side ends.
func (p *proxy) join(client net.Conn) {
	defer client.Close()
	if p.accept != nil {
		inner, err := p.accept(client)
		if err != nil {
			return
		}
		client = inner
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.keep(client, true)
	defer p.keep(client, false)
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(client, server) // either way the connection is over
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
	<-back
}

func (p *proxy) keep(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[c] = true
	} else {
		delete(p.open, c)
	}
}

// cut ends every connection and returns how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close() // that is the point
	}
	return len(p.open)
}

// hostOf returns host:port of a URI.
func hostOf(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
