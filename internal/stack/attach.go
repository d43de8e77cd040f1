package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Remote is a stack under a supervisor. It implements Control over the supervisor's socket and outlives any run.
type Remote struct {
	socket string
	client *http.Client
	state  State // as of Attach; addresses and versions do not change after that
}

// Attach finds the registered stack. Without one it returns false and no error.
func Attach(ctx context.Context) (Control, bool, error) {
	r, ok, err := AttachRemote(ctx)
	if !ok {
		return nil, false, err
	}
	return r, true, nil
}

// AttachRemote is Attach for callers that want to see or end the stack as well.
func AttachRemote(ctx context.Context) (*Remote, bool, error) {
	socket, err := socketPath("")
	if err != nil {
		return nil, false, err
	}
	return attachTo(ctx, socket)
}

func attachTo(ctx context.Context, socket string) (*Remote, bool, error) {
	r := newRemote(socket)
	state, err := r.State(ctx)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, false, nil // never made, or left by one that was killed
	}
	if err != nil {
		return nil, false, fmt.Errorf("ask the running stack: %w", err)
	}
	r.state = state
	return r, true, nil
}

func newRemote(socket string) *Remote {
	var dialer net.Dialer
	return &Remote{socket: socket, client: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // requests are rare, and a kept connection would keep a goroutine
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}}
}

// State asks for the present state.
func (r *Remote) State(ctx context.Context) (State, error) {
	var s State
	body, err := r.ask(ctx, http.MethodGet, "/state")
	if err != nil {
		return s, err
	}
	defer body.Close()
	err = json.NewDecoder(body).Decode(&s)
	return s, err
}

// Services lists what the stack holds, in the order in which it is shown.
func (r *Remote) Services() []string {
	var all []string
	for _, s := range r.state.Services {
		all = append(all, s.Service)
	}
	return all
}

// Down ends the stack and returns when it is gone.
func (r *Remote) Down(ctx context.Context) error { return r.order(ctx, "/down") }

// Stop implements Control.
func (r *Remote) Stop(ctx context.Context, service string) error {
	return r.order(ctx, "/services/"+service+"/stop")
}

// Start implements Control.
func (r *Remote) Start(ctx context.Context, service string) error {
	return r.order(ctx, "/services/"+service+"/start")
}

// Signal implements Control.
func (r *Remote) Signal(ctx context.Context, service string, signal os.Signal) error {
	number, ok := signal.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v to %s: %w", signal, service, errors.ErrUnsupported)
	}
	return r.order(ctx, "/services/"+service+"/signal?number="+strconv.Itoa(int(number)))
}

// Admin implements Control.
func (r *Remote) Admin(ctx context.Context, service string, args ...string) error {
	return r.order(ctx, "/services/"+service+"/admin?"+url.Values{"arg": args}.Encode())
}

// Hold implements Control. The open request is the hold: the supervisor ends the trouble when it ends.
func (r *Remote) Hold(ctx context.Context, service string, t Trouble) (Release, error) {
	open, end := io.Pipe()
	holding, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	answer, err := r.send(holding, http.MethodPost, "/services/"+service+"/hold?trouble="+string(t), open)
	if !stop() && err == nil {
		err = errors.Join(context.Cause(ctx), answer.Close())
	}
	if err != nil {
		cancel()
		return nil, errors.Join(err, end.Close())
	}
	return func(ctx context.Context) error {
		defer cancel()
		defer answer.Close()
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
		return errors.Join(end.Close(), released(answer))
	}, nil
}

// released reads how a release went.
func released(answer io.Reader) error {
	var f failure
	if err := json.NewDecoder(answer).Decode(&f); err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	if f != (failure{}) {
		return fromWire(f)
	}
	return nil
}

// Addresses implements Control.
func (r *Remote) Addresses() Addresses { return r.state.Addresses }

// Versions implements Control.
func (r *Remote) Versions() map[string]string {
	versions := map[string]string{}
	for _, s := range r.state.Services {
		versions[s.Service] = s.Version
	}
	return versions
}

var errSupervisorGone = errors.New("the supervisor of the stack is gone")

// Deaths implements Control. The end of the supervisor is the death of all its services.
func (r *Remote) Deaths(ctx context.Context) <-chan Death {
	heard := make(chan Death, deathBuffer)
	stream, err := r.ask(ctx, http.MethodGet, "/deaths")
	if err != nil {
		close(heard)
		return heard
	}
	go func() {
		defer close(heard)
		defer stream.Close()
		if err := relayDeaths(ctx, stream, heard); ctx.Err() == nil {
			for _, s := range r.state.Services {
				pass(ctx, heard, Death{s.Service, fmt.Errorf("%w (%w)", errSupervisorGone, err)})
			}
		}
	}()
	return heard
}

// relayDeaths passes on what the stream tells, until it ends.
func relayDeaths(ctx context.Context, stream io.Reader, heard chan<- Death) error {
	lines := json.NewDecoder(stream)
	for {
		var one wireDeath
		if err := lines.Decode(&one); err != nil {
			return err
		}
		pass(ctx, heard, Death{one.Service, &remoteError{text: one.Text}})
	}
}

func pass(ctx context.Context, heard chan<- Death, one Death) {
	select {
	case heard <- one:
	case <-ctx.Done():
	}
}

// CopyLogs implements Control. The files are written by this process, so they belong to the caller even where the
// supervisor runs with other rights.
func (r *Remote) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("folder for logs: %w", err)
	}
	for _, s := range r.state.Services {
		if err := r.saveLog(s.Service, filepath.Join(dir, s.Service+".log")); err != nil {
			return fmt.Errorf("copy the log of %s: %w", s.Service, err)
		}
	}
	return nil
}

func (r *Remote) saveLog(service, path string) error {
	log, err := r.Log(context.Background(), service)
	if err != nil {
		return err
	}
	defer log.Close()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, log)
	return errors.Join(err, out.Close())
}

// Log returns the whole log of a service so far; the caller closes it.
func (r *Remote) Log(ctx context.Context, service string) (io.ReadCloser, error) {
	return r.ask(ctx, http.MethodGet, "/services/"+service+"/log")
}

func (r *Remote) order(ctx context.Context, path string) error {
	body, err := r.ask(ctx, http.MethodPost, path)
	if err != nil {
		return err
	}
	return body.Close()
}

// ask sends one request and returns the body of a good answer; a bad one becomes an error that errors.Is knows.
func (r *Remote) ask(ctx context.Context, method, path string) (io.ReadCloser, error) {
	return r.send(ctx, method, path, http.NoBody)
}

func (r *Remote) send(ctx context.Context, method, path string, content io.Reader) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://stack"+path, content)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %s", ErrUnknownService, path)
	}
	var f failure
	if err := json.NewDecoder(response.Body).Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %s", errAnswer, response.Status)
	}
	return nil, fromWire(f)
}
