package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func TestAScrapeUnderWayIsNotTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{changed: make(chan struct{})}
		var answered error
		waited := make(chan struct{})
		early := s.begin()
		go func() { answered = s.WaitScrape(t.Context()); close(waited) }()
		synctest.Wait()
		s.finish(early)
		synctest.Wait()
		select {
		case <-waited:
			t.Fatal("a scrape that began before the call was taken for the last")
		default:
		}
		s.finish(s.begin())
		<-waited
		if answered != nil {
			t.Error(answered)
		}
	})
}

func TestWaitingForAScrapeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("bound reached")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := (&Server{changed: make(chan struct{})}).WaitScrape(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

// deaf is a client that went away.
type deaf struct{ http.ResponseWriter }

func (deaf) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

func TestOnlyAFullAnswerToAGetIsAScrape(t *testing.T) {
	t.Parallel()
	good := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) }
	bad := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	for _, row := range []struct {
		name    string
		method  string
		client  http.ResponseWriter
		handler http.HandlerFunc
		want    int64
	}{
		{"a full answer is one", http.MethodGet, httptest.NewRecorder(), good, 1},
		{"one without a body is none", http.MethodHead, httptest.NewRecorder(), good, 0},
		{"a refusal is none", http.MethodGet, httptest.NewRecorder(), bad, 0},
		{"one that was not written is none", http.MethodGet, deaf{httptest.NewRecorder()}, good, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := &Server{changed: make(chan struct{})}
			s.count(row.handler).ServeHTTP(row.client, httptest.NewRequestWithContext(t.Context(), row.method, "/metrics", nil))
			if got := s.Scrapes(); got != row.want {
				t.Errorf("%d scrapes, want %d", got, row.want)
			}
		})
	}
}
