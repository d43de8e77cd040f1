package workers

import (
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/timebase"
)

// deliveries keeps what a session took.
type deliveries struct {
	event.NopWork
	all []event.Delivered
}

func (d *deliveries) Delivered(e event.Delivered) { d.all = append(d.all, e) }

// TestADelayErrorIsKnownForTheFirstDeliveryOfACopyOnly: a redelivered one holds the time with its first worker too.
func TestADelayErrorIsKnownForTheFirstDeliveryOfACopyOnly(t *testing.T) {
	t.Parallel()
	base := timebase.New()
	copied := envelope.Headers{
		Retries: 1, RetriedAt: base.Micros(time.Second), RetryDelay: (5 * time.Second).Microseconds(),
	}
	for name, row := range map[string]struct {
		headers     envelope.Headers
		redelivered bool
		want        time.Duration
		known       bool
	}{
		"a first attempt":     {envelope.Headers{}, false, 0, false},
		"a copy":              {copied, false, 20 * time.Millisecond, true},
		"a copy, redelivered": {copied, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := &deliveries{}
			s := newSession(&Service{cfg: Config{Base: base, Observer: heard, Prefetch: 1}}, nil)
			s.take([]*broker.Delivery{{
				Tag: 1, Redelivered: row.redelivered, Headers: row.headers, ReceivedAt: base.Start().Add(6020 * time.Millisecond),
			}})
			got := heard.all[0]
			if got.HasDelayError != row.known || got.DelayError.Round(time.Microsecond) != row.want || got.At != 6020*time.Millisecond {
				t.Errorf("got %+v, want a delay error of %v (%v)", got, row.want, row.known)
			}
		})
	}
}
