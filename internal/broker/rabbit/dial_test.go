package rabbit

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"spillway/internal/broker"
)

func TestAPublisherOnABlockedSocketIsAbortedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	through, uri := newProxy(t, nil)
	d, err := New(Config{URIs: []string{uri}, Vhost: b.vhost})
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(broker.Publisher){
		"abort":                   broker.Publisher.Abort,
		"close with a short time": func(p broker.Publisher) { closeWithin(p, 200*time.Millisecond) },
	} {
		got := newBook()
		p := openPublisher(t, d, maxWindow, got.settled, nil)
		through.stall()
		var published uint64
		ended := make(chan error, 1)
		progress := make(chan struct{}, 1)
		go func() {
			m := message(plan.Orders, "order.created", 1)
			m.Body = make([]byte, 100<<10)
			for {
				if err := p.Publish(t.Context(), published, m); err != nil {
					ended <- err
					return
				}
				published++
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		}()
		for blocked := false; !blocked; {
			select {
			case <-progress:
			case <-time.After(300 * time.Millisecond):
				blocked = true
			}
		}
		started := time.Now()
		end(p)
		<-p.Done()
		if err := <-ended; !errors.Is(err, broker.ErrClosed) {
			t.Errorf("%s: publish ended with %v", name, err)
		}
		if took := time.Since(started); took > 2*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		got.check(t, int(published))
		if got.count(broker.Unknown) != int(published) {
			t.Errorf("%s: settled as %v, want all unknown", name, got.total)
		}
		through, uri = newProxy(t, nil)
		if d, err = New(Config{URIs: []string{uri}, Vhost: b.vhost}); err != nil {
			t.Fatal(err)
		}
	}
}

func closeWithin(p broker.Publisher, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	_ = p.Close(ctx) // the time-out is what the test wants
}

func TestAnotherAddressIsTriedWhenOneDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	uri, _ := environment(t)
	d, err := New(Config{URIs: []string{"amqp://guest:guest@127.0.0.1:1/", uri}, Vhost: b.vhost})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		product, _, err := d.Server(deadline(t))
		if err != nil || product != "RabbitMQ" {
			t.Errorf("got %q, %v", product, err)
		}
	}
}

func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	uri, _ := environment(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, row := range map[string]struct {
		config Config
		want   error
	}{
		"nobody listens":                {Config{URIs: []string{"amqp://guest:secret@127.0.0.1:1/"}}, broker.ErrUnreachable},
		"the name is not known":         {Config{URIs: []string{"amqp://guest:secret@no-such-host.invalid/"}}, broker.ErrUnreachable},
		"nobody answers":                {Config{URIs: []string{"amqp://guest:secret@" + silent.Addr().String()}, DialTimeout: 300 * time.Millisecond}, broker.ErrUnreachable},
		"plain where TLS is expected":   {Config{URIs: []string{strings.Replace(uri, "amqp:", "amqps:", 1)}, DialTimeout: 2 * time.Second}, broker.ErrUnreachable},
		"a wrong password":              {Config{URIs: []string{uri}, Password: "secret"}, broker.ErrLoginRefused},
		"a virtual host that is absent": {Config{URIs: []string{uri}, Vhost: "absent"}, broker.ErrLoginRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := New(row.config)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = d.Server(deadline(t))
			if !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the sentence shows the password or has several lines: %v", err)
			}
		})
	}
}

func TestTheContextBoundsADial(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	d, err := New(Config{URIs: []string{"amqp://" + silent.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err := d.OpenPublisher(ctx, "x", 1, nil, nil); !errors.Is(err, broker.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, tooOld := range map[string]bool{
		"3.9.29": true, "2.8.0": true, "3.10.0": false, "3.10.8": false, "3.13.7": false, "4.0.5": false, "4.3.6": false, "strange": false,
	} {
		err := checkVersion("RabbitMQ", version, endpoint{})
		if errors.Is(err, broker.ErrTooOld) != tooOld {
			t.Errorf("RabbitMQ %s: %v", version, err)
		}
	}
	if err := checkVersion("Other", "1.0", endpoint{}); err != nil {
		t.Errorf("another product: %v", err)
	}
}
