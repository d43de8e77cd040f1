package rabbit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"spillway/internal/broker"
	"spillway/internal/topology"
)

func TestAnAuditReadsEverythingAndLeavesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, func(s *topology.Settings) { s.Tiers = []time.Duration{time.Hour} })
	filled(t, b, plan.Orders, "order.created", 3000)
	filled(t, b, plan.DeadLetter, plan.ParkingKey, 20)
	filled(t, b, plan.Retry, plan.Tiers[0].Queues[1].RoutingKey, 7)
	admin := adminFor(t, b)
	for round := range 3 { // reading must not wear the messages out
		found, err := admin.ReadAll(deadline(t), plan.QueueNames())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{plan.Work: 3000, plan.Parking: 20, plan.Tiers[0].Queues[1].Queue: 7}
		for _, queue := range plan.QueueNames() {
			checkLying(t, queue, found[queue], want[queue])
			depth, err := admin.Depth(deadline(t), queue)
			if err != nil || depth.Ready != want[queue] {
				t.Errorf("round %d: queue %q has %+v afterwards (%v)", round, queue, depth, err)
			}
		}
	}
}

func checkLying(t *testing.T, queue string, lying []Lying, want int) {
	t.Helper()
	if len(lying) != want {
		t.Errorf("queue %q: %d messages were read, want %d", queue, len(lying), want)
		return
	}
	slices.SortFunc(lying, func(a, b Lying) int { return int(a.Seq - b.Seq) })
	for i, l := range lying {
		m := message("", "", int64(i))
		if l != (Lying{Seq: int64(i), Run: "r", MessageID: m.MessageID, SentAt: 1}) {
			t.Errorf("queue %q: message %d reads as %+v", queue, i, l)
			return
		}
	}
}

func TestAnAuditFindsMessagesThatMoveMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, func(s *topology.Settings) {
		s.Tiers = []time.Duration{60 * time.Millisecond, 120 * time.Millisecond, 180 * time.Millisecond}
	})
	const each = 400
	for _, tier := range plan.Tiers {
		for _, q := range tier.Queues {
			filled(t, b, plan.Retry, q.RoutingKey, each)
		}
	}
	found, err := adminFor(t, b).ReadAll(deadline(t), plan.QueueNames())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	for _, lying := range found {
		for _, l := range lying {
			seen[l.Seq]++
		}
	}
	for seq := range int64(each) {
		if seen[seq] != 9 {
			t.Fatalf("message %d was found %d times, and lies in 9 copies", seq, seen[seq])
		}
	}
}

func TestAnAuditIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	filled(t, b, plan.Orders, "order.created", 100)
	hog := openConsumer(t, b, plan.Work, 1) // a foreign consumer that keeps one and lets the rest be ready
	<-hog.Deliveries()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := adminFor(t, b).ReadAll(ctx, plan.QueueNames()); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, broker.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestTiersReturnMessagesOnTimeToTheWorkQueueAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	c := openConsumer(t, b, plan.Work, 10)
	for _, tier := range plan.Tiers[:1] {
		for _, q := range tier.Queues {
			published := time.Now()
			filled(t, b, plan.Retry, q.RoutingKey, 1)
			d := (<-c.Deliveries())[0]
			waited := d.ReceivedAt.Sub(published)
			if waited < q.Delay || waited > q.Delay+2*time.Second {
				t.Errorf("tier queue %q gave the message back after %v, its delay is %v", q.Queue, waited, q.Delay)
			}
			if d.RoutingKey != plan.Work || d.MessageID != "id-0" {
				t.Errorf("it came back as %+v", d)
			}
			if err := c.Ack(d.Tag, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTheDeliveryLimitParks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, func(s *topology.Settings) { s.DeliveryLimit = 3 })
	filled(t, b, plan.Orders, "order.created", 1)
	c := openConsumer(t, b, plan.Work, 1)
	for i := range 4 { // the limit and one more
		d := (<-c.Deliveries())[0]
		if d.DeliveryCount != i {
			t.Errorf("delivery %d has the count %d", i+1, d.DeliveryCount)
		}
		if err := c.Reject(d.Tag, true); err != nil {
			t.Fatal(err)
		}
	}
	admin := adminFor(t, b)
	eventually(t, "the message is parked", func() bool {
		depth, err := admin.Depth(deadline(t), plan.Parking)
		return err == nil && depth.Ready == 1
	})
}

func TestVerifyNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan := declared(t, b, nil)
	admin := adminFor(t, b)
	if err := admin.VerifyPassive(deadline(t), plan); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(deadline(t), &topology.Plan{Queues: plan.Queues[:1]}); err != nil {
		t.Fatal(err)
	}
	if err := admin.VerifyPassive(deadline(t), plan); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	missing, err := admin.Missing(deadline(t), plan)
	if err != nil || len(missing.Exchanges) != 0 || len(missing.Queues) != 1 || missing.Queues[0].Name != plan.Work {
		t.Errorf("missing is %+v (%v)", missing, err)
	}
	for range 2 { // what is gone is no error
		if err := admin.Delete(deadline(t), plan); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeclaringTwiceWithOtherArgumentsFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declared(t, b, nil)
	other := b.plan(t, func(s *topology.Settings) { s.DeliveryLimit = 5 })
	if err := adminFor(t, b).Declare(deadline(t), other); err == nil {
		t.Error("the other arguments were taken")
	}
}
