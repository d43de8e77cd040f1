package stack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

// The control socket speaks HTTP: it frames, it carries errors, and curl --unix-socket can look into it.
func (s *supervisor) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, r *http.Request) { answer(w, s.state(r.Context())) })
	mux.HandleFunc("POST /services/{name}/stop", func(w http.ResponseWriter, r *http.Request) {
		done(w, s.stack.Stop(r.Context(), r.PathValue("name")))
	})
	mux.HandleFunc("POST /services/{name}/start", func(w http.ResponseWriter, r *http.Request) {
		done(w, s.stack.Start(r.Context(), r.PathValue("name")))
	})
	mux.HandleFunc("POST /services/{name}/signal", s.signal)
	mux.HandleFunc("POST /services/{name}/admin", func(w http.ResponseWriter, r *http.Request) {
		done(w, s.stack.Admin(r.Context(), r.PathValue("name"), r.URL.Query()["arg"]...))
	})
	mux.HandleFunc("POST /services/{name}/hold", s.hold)
	mux.HandleFunc("GET /services/{name}/log", s.log)
	mux.HandleFunc("GET /deaths", s.deaths)
	mux.HandleFunc("POST /down", s.end)
	return mux
}

func (s *supervisor) signal(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.URL.Query().Get("number"))
	if err != nil {
		http.Error(w, "number: not a signal", http.StatusBadRequest)
		return
	}
	done(w, s.stack.Signal(r.Context(), r.PathValue("name"), syscall.Signal(number)))
}

// hold brings a service into trouble for as long as the request's body is open. A client that dies ends it too, so nothing
// that a killed run has broken stays broken. The answer begins when the trouble has, and ends with how the release went.
func (s *supervisor) hold(w http.ResponseWriter, r *http.Request) {
	stream := http.NewResponseController(w)
	if err := stream.EnableFullDuplex(); err != nil {
		done(w, err)
		return
	}
	release, err := s.stack.Hold(r.Context(), r.PathValue("name"), Trouble(r.URL.Query().Get("trouble")))
	if err != nil {
		done(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
	_ = stream.Flush() // who cannot hear it has gone, which ends the body too
	select {
	case <-ended(r.Body):
	case <-s.closed: // the services have ended
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releaseTimeout)
	defer cancel()
	var result failure
	if err := release(ctx); err != nil {
		result = toWire(err)
	}
	_ = json.NewEncoder(w).Encode(result) // nobody may be there to read it
}

func (s *supervisor) log(w http.ResponseWriter, r *http.Request) {
	log, err := s.stack.Log(r.Context(), r.PathValue("name"))
	if err != nil {
		done(w, err)
		return
	}
	defer log.Close()
	_, _ = io.Copy(w, log) // the client that went away is its own trouble
}

// wireDeath is a Death on the wire.
type wireDeath struct {
	Service string `json:"service"`
	Text    string `json:"text"`
}

// deaths answers with one line for each, until the client or the stack goes.
func (s *supervisor) deaths(w http.ResponseWriter, r *http.Request) {
	heard := s.stack.Deaths(r.Context())
	lines := json.NewEncoder(w)
	for flush := http.NewResponseController(w).Flush; flush() == nil; { // the first one tells the client that we listen
		select {
		case one, open := <-heard:
			if !open {
				heard = nil // the stream stays: its end says that the supervisor is gone
				continue
			}
			_ = lines.Encode(wireDeath{one.Service, one.Err.Error()}) // the next flush fails too
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// end asks the supervisor to close the stack and answers when it has.
func (s *supervisor) end(w http.ResponseWriter, r *http.Request) {
	select {
	case s.down <- struct{}{}:
	default: // somebody has asked already
	}
	select {
	case <-s.closed:
		done(w, s.result)
	case <-r.Context().Done():
	}
}

// failure is an error on the wire: its text, and the sentinel that the other side must know it by.
type failure struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"`
}

// wireKinds names the sentinels that cross the socket.
func wireKinds() map[string]error {
	return map[string]error{
		"unknown_service": ErrUnknownService,
		"unknown_trouble": ErrUnknownTrouble,
		"not_ready":       ErrNotReady,
		"already_up":      ErrAlreadyUp,
		"no_root":         ErrNoRoot,
		"no_servers":      ErrNoServers,
		"need_root":       ErrNeedRoot,
		"process_done":    os.ErrProcessDone,
		"unsupported":     errors.ErrUnsupported,
	}
}

func toWire(err error) failure {
	f := failure{Text: err.Error()}
	for kind, sentinel := range wireKinds() {
		if errors.Is(err, sentinel) {
			f.Kind = kind
		}
	}
	return f
}

// remoteError is an error that happened in the supervisor.
type remoteError struct {
	text string
	kind error // nil for one that no sentinel stands for
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

func fromWire(f failure) error { return &remoteError{f.Text, wireKinds()[f.Kind]} }

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client that went away is its own trouble
}

func done(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(toWire(err)) // as above
}
