package rabbit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"spillway/internal/broker"
)

const (
	defaultManagementTimeout = 15 * time.Second
	// maxAnswer bounds what is read of one answer; a list of 10,000 queues takes about 20 MB.
	maxAnswer = 64 << 20
)

// ErrManagement is wrapped by answers of the management API that are neither a refusal nor "not found".
var ErrManagement = errors.New("the management API failed")

// ManagementConfig says where the management API is.
type ManagementConfig struct {
	URL      string   // http or https, with or without credentials in it
	Others   []string // the same of the cluster's other nodes, asked when the one before does not answer; the first's credentials hold for all
	Username string   // replaces the one in the URL; "" keeps it
	Password string
	TLS      TLS           // for https
	Timeout  time.Duration // of one request; 0 is 15 s
}

// Management is a client of the management API (RabbitMQ 3.10 to 4.3). It is safe for concurrent use.
type Management struct {
	nodes    []managementNode
	current  atomic.Int64 // index of the node that answered last
	username string
	password string
	client   *http.Client
}

// NewManagement checks the configuration. It dials nothing.
func NewManagement(c ManagementConfig) (*Management, error) {
	m := &Management{}
	secured := false
	for i, text := range append([]string{c.URL}, c.Others...) {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("management address %d: %w", i+1, ErrBadManagementURL) // the parser's error quotes its input
		}
		if i == 0 {
			m.username = u.User.Username()
			m.password, _ = u.User.Password()
		}
		u.User = nil
		secured = secured || u.Scheme == "https"
		m.nodes = append(m.nodes, managementNode{base: strings.TrimRight(u.String(), "/"), host: u.Hostname()})
	}
	override(&m.username, c.Username)
	override(&m.password, c.Password)
	secure, err := managementTLS(c.TLS, secured)
	if err != nil {
		return nil, fmt.Errorf("management address: %w", err)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultManagementTimeout
	}
	m.client = &http.Client{
		Timeout: c.Timeout,
		Transport: &http.Transport{
			TLSClientConfig:     secure,
			DialContext:         (&net.Dialer{Timeout: c.Timeout}).DialContext,
			MaxIdleConnsPerHost: 2, // the sampler and one other
			IdleConnTimeout:     30 * time.Second,
		},
	}
	return m, nil
}

// ErrBadManagementURL is returned for a management address that is no http or https URL. It does not quote the text.
var ErrBadManagementURL = errors.New("not an http:// or https:// URL")

// managementNode is one address.
type managementNode struct {
	base string // without credentials, without trailing slash
	host string
}

func managementTLS(t TLS, secured bool) (*tls.Config, error) {
	if !secured {
		return nil, nil
	}
	return t.config()
}

// Hosts returns the host names of the addresses, for the check that a run may touch them.
func (m *Management) Hosts() []string {
	var hosts []string
	for _, n := range m.nodes {
		hosts = append(hosts, n.host)
	}
	return hosts
}

// String returns the address that answered last, without credentials.
func (m *Management) String() string { return m.nodes[m.current.Load()].base }

// Username returns the user that the client logs in as.
func (m *Management) Username() string { return m.username }

// Close releases idle connections.
func (m *Management) Close() { m.client.CloseIdleConnections() }

// path joins escaped segments under /api.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// get reads one JSON answer into out.
func (m *Management) get(ctx context.Context, path string, out any) error {
	return m.do(ctx, http.MethodGet, path, nil, out)
}

func (m *Management) put(ctx context.Context, path string, body any) error {
	return m.do(ctx, http.MethodPut, path, body, nil)
}

func (m *Management) delete(ctx context.Context, path string) error {
	return m.do(ctx, http.MethodDelete, path, nil, nil)
}

// do asks the node that answered last and, while none answers, the others in turn.
func (m *Management) do(ctx context.Context, method, path string, body, out any) error {
	first := m.current.Load()
	var problem error
	for i := range int64(len(m.nodes)) {
		k := (first + i) % int64(len(m.nodes))
		err := m.ask(ctx, m.nodes[k].base, method, path, body, out)
		if !errors.Is(err, broker.ErrUnreachable) {
			m.current.Store(k)
			return err
		}
		if problem == nil {
			problem = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return problem
}

func (m *Management) ask(ctx context.Context, base, method, path string, body, out any) error {
	request, err := m.request(ctx, method, base+path, body)
	if err != nil {
		return err
	}
	response, err := m.client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: management API at %s (%w): check the address and that the plugin rabbitmq_management is enabled",
			broker.ErrUnreachable, base, causeOf(err))
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: management API at %s: %w", broker.ErrUnreachable, base, err)
	}
	if response.StatusCode >= 300 {
		return m.refusal(base, method, path, response.StatusCode, answer)
	}
	if out == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrManagement, method, path, err)
	}
	return nil
}

// causeOf strips the request from an HTTP client's error: it would repeat method and address.
func causeOf(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (m *Management) request(ctx context.Context, method, address string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, address, err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, address, err)
	}
	request.SetBasicAuth(m.username, m.password)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// refusal classes an answer by its status. RabbitMQ answers 401 both to a wrong password and to a user without the tag
// that the request needs; the reason in the body tells a person which.
func (m *Management) refusal(base, method, path string, status int, answer []byte) error {
	var reply struct {
		Reason any `json:"reason"`
	}
	_ = json.Unmarshal(answer, &reply) // an answer of another shape just has no reason
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: management API at %s, user %q (%v): check the password, and that the user has the tag management",
			broker.ErrLoginRefused, base, m.username, reply.Reason)
	case http.StatusForbidden:
		return fmt.Errorf("%w: %s %s, user %q (%v)", broker.ErrRightMissing, method, path, m.username, reply.Reason)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s %s", ErrNotFound, method, path)
	default:
		return fmt.Errorf("%w: %s %s: status %d: %v", ErrManagement, method, path, status, reply.Reason)
	}
}
