package rabbit

import (
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a driver and the real broker. stall makes it read no more from the client, as a broker with an
// alarm does; answers still come.
type proxy struct {
	listener net.Listener
	backend  string

	mu      sync.Mutex
	conns   []net.Conn // guarded by mu
	stalled chan struct{}
	once    sync.Once
}

func newProxy(t *testing.T, secure *tls.Config) (*proxy, string) {
	t.Helper()
	uri, _ := environment(t)
	backend, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme := "amqp"
	if secure != nil {
		listener, scheme = tls.NewListener(listener, secure), "amqps"
	}
	p := &proxy{listener: listener, backend: backend.Host, stalled: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		p.stall()
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		serving.Wait()
	})
	backend.Scheme, backend.Host = scheme, listener.Addr().String()
	return p, backend.String()
}

func (p *proxy) stall() { p.once.Do(func() { close(p.stalled) }) }

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.backend)
		if err != nil {
			_ = client.Close()
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		serving.Go(func() { p.forward(server, client) })
		serving.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
	}
}

// forward copies from the client until the proxy stalls.
func (p *proxy) forward(server, client net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			_ = server.Close()
			return
		}
		select {
		case <-p.stalled:
			return // keeps both sockets open and reads no more
		default:
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			_ = client.Close()
			return
		}
	}
}
