package workers

import (
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
)

// TestAProducersTTLBecomesADeadline holds from when it counts. Timestamps hold whole seconds: counted from the start of
// the second, a TTL of half a second could be over before the message was sent.
func TestAProducersTTLBecomesADeadline(t *testing.T) {
	t.Parallel()
	second := time.Unix(1_700_000_000, 0)
	for name, row := range map[string]struct {
		delivery broker.Delivery
		want     int64
	}{
		"no TTL, no deadline": {broker.Delivery{Timestamp: second, ReceivedAt: second}, 0},
		"a TTL counts from when the message was sent": {broker.Delivery{
			Expiration: 500 * time.Millisecond, Timestamp: second, ReceivedAt: second.Add(5 * time.Second),
			Headers: envelope.Headers{SentAt: second.UnixMicro() + 900_000},
		}, second.UnixMicro() + 1_400_000},
		"without that, from the end of the timestamp's second": {broker.Delivery{
			Expiration: 500 * time.Millisecond, Timestamp: second, ReceivedAt: second.Add(5 * time.Second),
		}, second.UnixMicro() + 1_500_000},
		"without a timestamp, from the delivery": {broker.Delivery{
			Expiration: 500 * time.Millisecond, ReceivedAt: second.Add(5 * time.Second),
		}, second.UnixMicro() + 5_500_000},
		"a deadline that it carries stays": {broker.Delivery{
			Expiration: time.Hour, Timestamp: second, Headers: envelope.Headers{SentAt: 1, Deadline: 42},
		}, 42},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := deadlineOf(&row.delivery); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}
