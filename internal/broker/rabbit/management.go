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
	URL      string // http or https, with or without credentials in it
	Username string // replaces the one in the URL; "" keeps it
	Password string
	TLS      TLS           // for https
	Timeout  time.Duration // of one request; 0 is 15 s
}

// Management is a client of the management API (RabbitMQ 3.10 to 4.3). It is safe for concurrent use.
type Management struct {
	base     string // without credentials, without trailing slash
	host     string
	username string
	password string
	client   *http.Client
}

// NewManagement checks the configuration. It dials nothing.
func NewManagement(c ManagementConfig) (*Management, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("management address: %w", ErrBadManagementURL) // the parser's error quotes its input
	}
	secure, err := managementTLS(c.TLS, u.Scheme)
	if err != nil {
		return nil, fmt.Errorf("management address: %w", err)
	}
	m := &Management{username: u.User.Username(), host: u.Hostname()}
	m.password, _ = u.User.Password()
	override(&m.username, c.Username)
	override(&m.password, c.Password)
	u.User = nil
	m.base = strings.TrimRight(u.String(), "/")
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

func managementTLS(t TLS, scheme string) (*tls.Config, error) {
	if scheme != "https" {
		return nil, nil
	}
	return t.config()
}

// Host returns the host name of the address, for the check that a run may touch it.
func (m *Management) Host() string { return m.host }

// String returns the address without credentials.
func (m *Management) String() string { return m.base }

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

func (m *Management) do(ctx context.Context, method, path string, body, out any) error {
	request, err := m.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	response, err := m.client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: management API at %s (%w): check the address and that the plugin rabbitmq_management is enabled",
			broker.ErrUnreachable, m.base, causeOf(err))
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: management API at %s: %w", broker.ErrUnreachable, m.base, err)
	}
	if response.StatusCode >= 300 {
		return m.refusal(method, path, response.StatusCode, answer)
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

func (m *Management) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, m.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.SetBasicAuth(m.username, m.password)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// refusal classes an answer by its status. RabbitMQ answers 401 both to a wrong password and to a user without the tag
// that the request needs; the reason in the body tells a person which.
func (m *Management) refusal(method, path string, status int, answer []byte) error {
	var reply struct {
		Reason any `json:"reason"`
	}
	_ = json.Unmarshal(answer, &reply) // an answer of another shape just has no reason
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: management API at %s, user %q (%v): check the password, and that the user has the tag management",
			broker.ErrLoginRefused, m.base, m.username, reply.Reason)
	case http.StatusForbidden:
		return fmt.Errorf("%w: %s %s, user %q (%v)", broker.ErrRightMissing, method, path, m.username, reply.Reason)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s %s", ErrNotFound, method, path)
	default:
		return fmt.Errorf("%w: %s %s: status %d: %v", ErrManagement, method, path, status, reply.Reason)
	}
}
