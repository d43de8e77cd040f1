package metrics

import (
	"context"
	"fmt"
	"net/http"
)

// Scrapes returns how many scrapes were answered in full.
func (s *Server) Scrapes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished
}

// WaitScrape returns nil once a scrape that began after the call was answered in full, so that Prometheus has the last
// values of a run; it returns the context's error when ctx ends first. A scrape already under way does not do: it may
// have gathered before the last values were set.
func (s *Server) WaitScrape(ctx context.Context) error {
	s.mu.Lock()
	before := s.begun
	s.mu.Unlock()
	for {
		s.mu.Lock()
		seen, changed := s.latest > before, s.changed
		s.mu.Unlock()
		if seen {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for a last scrape: %w", context.Cause(ctx))
		}
	}
}

// count counts the scrapes that next answers.
func (s *Server) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := s.begin()
		answer := &answer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if r.Method == http.MethodGet && answer.complete() { // a HEAD, which the route takes too, is no scrape
			s.finish(number)
		}
	})
}

func (s *Server) begin() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	return s.begun
}

func (s *Server) finish(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished++
	s.latest = max(s.latest, number)
	close(s.changed)
	s.changed = make(chan struct{})
}

// answer notes whether a response went out as it should.
type answer struct {
	http.ResponseWriter

	refused bool // a status other than 200
	broken  bool // a write failed
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.refused = a.refused || status != http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

func (a *answer) complete() bool { return !a.refused && !a.broken }
